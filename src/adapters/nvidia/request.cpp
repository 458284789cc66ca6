#include "adapters/nvidia/request.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>

#include "core/base/suggest.h"
#include "core/base/text.h"

namespace hf::nvidia {
namespace {

std::string find_in(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) { return char(std::tolower(letter)); });
  return lower;
}

bool is_cdi_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 && name.find('=', slash) != std::string_view::npos;
}

// "nvidia.com/gpu/0" → "nvidia.com/gpu=0"
std::string cdi_name_of(std::string_view path) {
  const std::size_t last = path.rfind('/');
  return last == std::string_view::npos ? std::string()
                                        : std::string(path.substr(0, last)) + "=" + std::string(path.substr(last + 1));
}

void add_gpu(VisibleDevices& visible, std::string_view entry) {
  const std::string lower = lower_case(entry);
  if (lower == "all") {
    visible.all = true;
  } else if (lower == "none") {
    visible.none = true;
  } else if (!lower.empty() && lower != "void") {
    visible.ids.emplace_back(entry);
  }
}

constexpr std::array<std::string_view, 8> kCapabilities = {"all",      "compute", "compat32", "display",
                                                           "graphics", "ngx",     "utility",  "video"};

bool are_channels(std::string_view text) {
  return std::ranges::all_of(split(text, ','), [](std::string_view part) {
    return trim(part).empty() || parse_number<std::uint32_t>(trim(part)).has_value();
  });
}

void note_mistakes(const std::map<std::string, std::string>& environment, bool is_privileged, Request& request) {
  const auto note = [&](const std::string& name, const std::string& what, const std::string& valid) {
    request.mistakes.push_back(name + "=" + find_in(environment, name) + ": " + what + "; valid: " + valid);
  };
  const std::vector<std::string> valid(kCapabilities.begin(), kCapabilities.end());
  for (const std::string& name : request.capabilities.names) {
    if (std::ranges::find(valid, name) == valid.end()) {
      note("NVIDIA_DRIVER_CAPABILITIES", "there is no " + quote(name) + did_you_mean(name, valid), join(valid, ", "));
      break;
    }
  }
  if (!are_channels(find_in(environment, "NVIDIA_IMEX_CHANNELS"))) {
    note("NVIDIA_IMEX_CHANNELS", "an IMEX channel is a number", "numbers, separated by commas");
  }
  for (const char* name : {"NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"}) {
    const std::string value = find_in(environment, name);
    if (!value.empty() && (value != "all" || !is_privileged)) {
      note(name, value == "all" ? "this container is not privileged" : "it selects every device or none",
           "all, in a privileged container");
    }
  }
}

}  // namespace

VisibleDevices parse_visible_devices(std::string_view text) {
  VisibleDevices visible;
  visible.text = text;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view entry = trim(part);
    if (is_cdi_name(entry)) {
      visible.cdi_names.emplace_back(entry);
    } else {
      add_gpu(visible, entry);
    }
  }
  return visible;
}

DriverCapabilities parse_driver_capabilities(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  DriverCapabilities capabilities{.names = {}};
  for (const std::string_view part : split(text, ',')) {
    if (!trim(part).empty()) {
      capabilities.names.insert(lower_case(trim(part)));
    }
  }
  return capabilities.names.empty() ? DriverCapabilities() : capabilities;  // "," names none, as "" does
}

std::vector<std::uint32_t> parse_imex_channels(std::string_view text) {
  std::vector<std::uint32_t> channels;
  for (const std::string_view part : split(text, ',')) {
    if (const std::optional<std::uint32_t> channel = parse_number<std::uint32_t>(trim(part))) {
      channels.push_back(*channel);
    }
  }
  return channels;
}

Request request_in(const std::map<std::string, std::string>& environment, bool is_privileged) {
  Request request;
  // Images older than NVIDIA_VISIBLE_DEVICES set only CUDA_VERSION, which requests all GPUs.
  const bool is_legacy = !environment.contains("NVIDIA_VISIBLE_DEVICES") && environment.contains("CUDA_VERSION") &&
                         !environment.contains("NVIDIA_REQUIRE_CUDA");
  request.visible = parse_visible_devices(is_legacy ? "all" : find_in(environment, "NVIDIA_VISIBLE_DEVICES"));
  request.capabilities = parse_driver_capabilities(find_in(environment, "NVIDIA_DRIVER_CAPABILITIES"));
  request.imex_channels = parse_imex_channels(find_in(environment, "NVIDIA_IMEX_CHANNELS"));
  request.configures_mig = is_privileged && find_in(environment, "NVIDIA_MIG_CONFIG_DEVICES") == "all";
  request.monitors_mig = is_privileged && find_in(environment, "NVIDIA_MIG_MONITOR_DEVICES") == "all";
  note_mistakes(environment, is_privileged, request);
  return request;
}

void add_mount(DeviceMounts& mounts, std::string_view source, std::string_view destination) {
  if (source != "/dev/null" || !destination.starts_with(kDeviceMounts)) {
    return;
  }
  constexpr std::string_view kCdi = "cdi/";
  constexpr std::string_view kImex = "imex/";
  const std::string_view name = destination.substr(kDeviceMounts.size());
  mounts.names.emplace_back(name);
  if (name.starts_with(kCdi)) {
    mounts.visible.cdi_names.push_back(cdi_name_of(name.substr(kCdi.size())));
    return;
  }
  if (name.starts_with(kImex)) {
    const std::string_view channels = name.substr(kImex.size());
    if (!are_channels(channels)) {
      mounts.mistakes.push_back("a mount at " + std::string(destination) + ": an IMEX channel is a number");
    }
    std::ranges::copy(parse_imex_channels(channels), std::back_inserter(mounts.imex_channels));
    return;
  }
  mounts.visible.text += mounts.visible.text.empty() ? "" : ",";
  mounts.visible.text += name;
  for (const std::string_view part : split(name, ',')) {
    add_gpu(mounts.visible, trim(part));
  }
}

bool is_nvidia_hook(const std::string& path) {
  const std::string_view name = base_name(path);
  return name == "nvidia-container-runtime-hook" || name == "nvidia-container-toolkit" ||
         name == "nvidia-container-cli";
}

}  // namespace hf::nvidia
