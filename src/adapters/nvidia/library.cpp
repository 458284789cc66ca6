#include "adapters/nvidia/library.h"

#include <algorithm>
#include <array>
#include <map>

#include "adapters/nvidia/nvml.h"
#include "core/base/text.h"
#include "kernel/process/subprocess.h"

namespace hf::nvidia {
namespace {

std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::uint32_t number(std::string_view text) { return parse_number<std::uint32_t>(text).value_or(0); }

// The code is -1 for a function that the library does not have.
int code_in(std::string_view text) { return text.starts_with('-') ? -int(number(text.substr(1))) : int(number(text)); }

void read_line(std::string_view line, LibraryAnswer& answer) {
  const std::size_t blank = line.find(' ');
  const std::string_view key = line.substr(0, blank);
  const std::string value(blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1));
  const std::map<std::string_view, std::string*> texts = {{"nvml-message", &answer.nvml_message},
                                                          {"driver", &answer.driver_version},
                                                          {"nvml-version", &answer.nvml_version},
                                                          {"cuda-version", &answer.cuda_version},
                                                          {"cuda-message", &answer.cuda_message}};
  if (const auto text = texts.find(key); text != texts.end()) {
    *text->second = value;
  } else if (key == "nvml") {
    answer.has_nvml = true;
    answer.nvml_code = code_in(value);
  } else if (key == "cuda") {
    answer.has_cuda = true;
    answer.cuda_code = code_in(value);
  } else if (key == "gpu") {
    answer.gpus.emplace_back().index = number(value);
  } else if (!answer.gpus.empty()) {
    GpuAnswer& gpu = answer.gpus.back();
    const std::map<std::string_view, std::string*> gpu_texts = {
        {"uuid", &gpu.uuid},   {"name", &gpu.name},     {"pci", &gpu.pci},
        {"error", &gpu.error}, {"fabric", &gpu.fabric}, {"compute", &gpu.compute_capability}};
    if (const auto gpu_text = gpu_texts.find(key); gpu_text != gpu_texts.end()) {
      *gpu_text->second = value;
    } else if (key == "minor") {
      gpu.minor = number(value);
    } else if (key == "memory") {
      gpu.memory = parse_number<std::uint64_t>(value);
    } else if (key == "mig-mode") {
      gpu.is_mig_capable = true;
      gpu.mig_enabled = value == "1";
    } else if (key == "mig") {
      const std::vector<std::string_view> parts = split_fields(value);
      if (parts.size() >= 3) {
        gpu.mig.push_back({std::string(parts[0]), number(parts[1]), number(parts[2]),
                           std::string(parts.size() > 3 ? parts[3] : std::string_view())});
      }
    } else if (key == "nvlink") {
      const std::vector<std::string_view> parts = split_fields(value);
      if (parts.size() == 2) {
        gpu.nvlinks[std::string(parts[0])] = number(parts[1]);
      }
    }
  }
}

// NVML's "00000000:CA:00.0" is "0000:ca:00.0" in sysfs: a shorter domain, in lower case.
std::string pci_as_in_sysfs(const std::string& pci) {
  std::string text = pci.size() > 12 ? pci.substr(pci.size() - 12) : pci;
  std::ranges::transform(text, text.begin(), [](unsigned char byte) { return char(std::tolower(byte)); });
  return text;
}

device::Unit& unit_for(device::Inventory& inventory, const GpuAnswer& gpu) {
  const std::string pci = pci_as_in_sysfs(gpu.pci);
  for (device::Unit& unit : inventory.units) {
    const bool same = unit.device_class == "nvidia" &&
                      ((!pci.empty() && unit.pci == pci) || (!gpu.uuid.empty() && unit.uuid == gpu.uuid));
    if (same) {
      return unit;
    }
  }
  // NVML reports neither address nor UUID of a lost GPU, only its index.
  std::uint32_t index = 0;
  for (device::Unit& unit : inventory.units) {
    const bool counts = unit.device_class == "nvidia" && !unit.is_excluded;
    if (counts && pci.empty() && gpu.uuid.empty() && index == gpu.index) {
      return unit;
    }
    index += counts ? 1 : 0;
  }
  device::Unit& unit = inventory.units.emplace_back();
  unit.device_class = "nvidia";
  unit.name = gpu.minor ? std::to_string(*gpu.minor) : std::to_string(gpu.index);
  unit.pci = pci;
  if (gpu.minor) {
    unit.nodes.push_back("/dev/nvidia" + std::to_string(*gpu.minor));
  }
  return unit;
}

}  // namespace

std::string render_answer(const LibraryAnswer& answer) {
  std::string text;
  const auto put = [&text](std::string_view key, const std::string& value) {
    text += std::string(key) + " " + on_one_line(value) + "\n";
  };
  if (answer.has_nvml) {
    put("nvml", std::to_string(answer.nvml_code));
    put("nvml-message", answer.nvml_message);
    put("driver", answer.driver_version);
    put("nvml-version", answer.nvml_version);
    put("cuda-version", answer.cuda_version);
  }
  if (answer.has_cuda) {
    put("cuda", std::to_string(answer.cuda_code));
    put("cuda-message", answer.cuda_message);
  }
  for (const GpuAnswer& gpu : answer.gpus) {
    put("gpu", std::to_string(gpu.index));
    put("uuid", gpu.uuid);
    put("name", gpu.name);
    put("pci", gpu.pci);
    put("error", gpu.error);
    put("fabric", gpu.fabric);
    put("compute", gpu.compute_capability);
    if (gpu.is_mig_capable) {
      put("mig-mode", gpu.mig_enabled ? "1" : "0");
    }
    if (gpu.minor) {
      put("minor", std::to_string(*gpu.minor));
    }
    if (gpu.memory) {
      put("memory", std::to_string(*gpu.memory));
    }
    for (const auto& [pci, count] : gpu.nvlinks) {
      put("nvlink", pci + " " + std::to_string(count));
    }
    for (const MigAnswer& mig : gpu.mig) {
      put("mig", mig.uuid + " " + std::to_string(mig.gpu_instance) + " " + std::to_string(mig.compute_instance) + " " +
                     mig.profile);
    }
  }
  return text;
}

LibraryAnswer parse_answer(std::string_view text) {
  LibraryAnswer answer;
  for (const std::string_view line : split(text, '\n')) {
    read_line(line, answer);
  }
  return answer;
}

Result<LibraryAnswer> ask_libraries(std::chrono::milliseconds limit, Question question) {
  const Result<std::string> text =
      kernel::run_in_subprocess([question] { return render_answer(load_and_ask(question)); }, limit);
  if (!text) {
    return fail(text.error().code, "ask NVIDIA's libraries: " + text.error().message);
  }
  return parse_answer(*text);
}

std::string meaning_of_nvml(int code) {
  switch (code) {
    case 0: return "";
    case 4: return "a device node under /dev/nvidia* does not let this user in (EACCES)";
    case 9: return "the kernel driver is not loaded, or /dev/nvidiactl is missing";
    case 15: return "the GPU has fallen off the bus: it needs a reset or a reboot";
    case 17: return "the operating system blocks access to the GPU";
    case 18: return "the library and the loaded kernel driver are of different versions: reload the driver or reboot";
    case 999: return "a device node is denied by the device cgroup of the caller (EPERM)";
    default: return "";
  }
}

std::string meaning_of_cuda(int code) {
  switch (code) {
    case 0: return "";
    case 30:
    case 999: return "/dev/nvidia-uvm is denied, missing or has a wrong major number";
    case 100: return "no usable GPU: /dev/nvidiactl or the GPU's node is denied, or belongs to another driver";
    case 304: return "a call to the operating system failed";
    case 800: return "not permitted: often an IMEX channel that is missing or denied";
    case 802: return "the NVLink fabric is not ready: is nvidia-fabricmanager running?";
    case 803: return "the library and the loaded kernel driver are of different versions: reload the driver or reboot";
    case 805: return "the MPS server does not answer";
    default: return "";
  }
}

void add_to(device::Inventory& inventory, const LibraryAnswer& answer) {
  if (!answer.has_nvml && !answer.has_cuda) {
    return;
  }
  const std::string asked = answer.has_nvml && answer.has_cuda ? "NVML was asked and CUDA initialised"
                            : answer.has_nvml                  ? "NVML was asked"
                                                               : "CUDA was initialised";
  inventory.notes.push_back(asked + ": that wakes a sleeping GPU");
  auto state = std::ranges::find(inventory.states, "nvidia", &device::DriverState::device_class);
  if (state == inventory.states.end()) {
    inventory.states.emplace_back().device_class = "nvidia";
    state = std::prev(inventory.states.end());
  }
  state->library_version = answer.nvml_version;
  state->cuda_version = answer.cuda_version;
  if (answer.has_nvml && answer.nvml_code != 0) {
    state->library_error = "NVML: " + answer.nvml_message + " (" + std::to_string(answer.nvml_code) + ")";
    state->meaning = meaning_of_nvml(answer.nvml_code);
  } else if (answer.has_cuda && answer.cuda_code != 0) {
    state->library_error = "CUDA: " + answer.cuda_message + " (" + std::to_string(answer.cuda_code) + ")";
    state->meaning = meaning_of_cuda(answer.cuda_code);
  }
  for (const GpuAnswer& gpu : answer.gpus) {
    device::Unit& unit = unit_for(inventory, gpu);
    unit.uuid = gpu.uuid.empty() ? unit.uuid : gpu.uuid;
    unit.model = gpu.name.empty() ? unit.model : gpu.name;
    unit.memory_bytes = gpu.memory;
    unit.compute_capability = gpu.compute_capability;
    unit.is_mig_capable = gpu.is_mig_capable;
    unit.mig_enabled = gpu.mig_enabled;
    for (const auto& [pci, count] : gpu.nvlinks) {
      unit.nvlinks[pci_as_in_sysfs(pci)] += count;
    }
    for (const MigAnswer& mig : gpu.mig) {
      unit.mig.push_back({mig.uuid, mig.gpu_instance, mig.compute_instance, {}, mig.profile});
    }
    if (!gpu.error.empty()) {
      unit.health = device::Health::bad;
      unit.health_text = gpu.error;
    } else if (!gpu.fabric.empty() && gpu.fabric != "completed" && gpu.fabric != "not supported") {
      unit.health = device::Health::bad;
      unit.health_text = "the NVLink fabric is " + gpu.fabric;
      unit.lacks_fabric = true;
    } else if (unit.health == device::Health::unknown) {
      unit.health = device::Health::good;
    }
  }
}

}  // namespace hf::nvidia
