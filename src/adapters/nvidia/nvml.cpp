#include "adapters/nvidia/nvml.h"

#include <array>
#include <cstring>

#include <dlfcn.h>

namespace hf::nvidia {
namespace {

using Handle = void*;

// The layout is that of NVIDIA's nvml.h.
struct PciOfNvml {
  std::array<char, 16> short_address;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> address;
};
static_assert(sizeof(PciOfNvml) == 68);

struct MemoryOfNvml {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct FabricOfNvml {
  std::array<unsigned char, 16> cluster;
  int status;
  unsigned clique;
  unsigned char state;
};

class Library {
 public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  explicit operator bool() const { return handle_ != nullptr; }

  template <class F>
  F* find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<F*>(::dlsym(handle_, name));
  }

  // Returns -1 where the library does not have the function.
  template <class... A, class... B>
  int call(const char* name, B... arguments) const {
    auto* const function = find<int(A...)>(name);
    return function == nullptr ? -1 : function(arguments...);
  }

 private:
  void* handle_;  // never closed: the process is about to end
};

std::string version_of_cuda(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string name_of_fabric(unsigned char state) {
  constexpr std::array<const char*, 4> kNames = {"not supported", "not started", "in progress", "completed"};
  return state < kNames.size() ? kNames[state] : "unknown";
}

// "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
std::string profile_in(const std::string& name) {
  constexpr std::string_view kMark = " MIG ";
  const std::size_t mark = name.rfind(kMark);
  return mark == std::string::npos ? "" : name.substr(mark + kMark.size());
}

class Nvml {
 public:
  Nvml(const Library& library, Question question) : library_(library), question_(question) {}

  void ask(LibraryAnswer& answer) const {
    answer.nvml_code = library_.call<>("nvmlInit_v2");
    answer.nvml_message = message_of(answer.nvml_code);
    if (answer.nvml_code != 0) {
      return;
    }
    answer.driver_version = text_of("nvmlSystemGetDriverVersion");
    answer.nvml_version = text_of("nvmlSystemGetNVMLVersion");
    int cuda = 0;
    if (library_.call<int*>("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0) {
      answer.cuda_version = version_of_cuda(cuda);
    }
    unsigned count = 0;
    library_.call<unsigned*>("nvmlDeviceGetCount_v2", &count);
    for (unsigned i = 0; i < count; ++i) {
      answer.gpus.push_back(ask_gpu(i));
    }
    library_.call<>("nvmlShutdown");
  }

 private:
  [[nodiscard]] std::string message_of(int code) const {
    auto* const function = library_.find<const char*(int)>("nvmlErrorString");
    const char* const message = function == nullptr ? nullptr : function(code);
    return message == nullptr ? "" : message;
  }

  std::string text_of(const char* name) const {
    std::array<char, 96> text{};
    return library_.call<char*, unsigned>(name, text.data(), unsigned(text.size())) == 0 ? text.data() : "";
  }

  std::string text_of(const char* name, Handle gpu) const {
    std::array<char, 96> text{};
    return library_.call<Handle, char*, unsigned>(name, gpu, text.data(), unsigned(text.size())) == 0 ? text.data()
                                                                                                      : "";
  }

  [[nodiscard]] GpuAnswer ask_gpu(unsigned index) const {
    GpuAnswer answer;
    answer.index = index;
    Handle gpu = nullptr;
    const int code = library_.call<unsigned, Handle*>("nvmlDeviceGetHandleByIndex_v2", index, &gpu);
    if (code != 0) {
      answer.error = message_of(code);
      return answer;
    }
    answer.uuid = text_of("nvmlDeviceGetUUID", gpu);
    answer.name = text_of("nvmlDeviceGetName", gpu);
    unsigned minor = 0;
    if (library_.call<Handle, unsigned*>("nvmlDeviceGetMinorNumber", gpu, &minor) == 0) {
      answer.minor = minor;
    }
    PciOfNvml pci{};
    if (library_.call<Handle, PciOfNvml*>("nvmlDeviceGetPciInfo_v3", gpu, &pci) == 0) {
      answer.pci = pci.address.data();
    }
    if (question_ == Question::everything) {
      ask_details(gpu, answer);
    }
    ask_mig(gpu, answer);
    return answer;
  }

  void ask_details(Handle gpu, GpuAnswer& answer) const {
    MemoryOfNvml memory{};
    const int memory_code = library_.call<Handle, MemoryOfNvml*>("nvmlDeviceGetMemoryInfo", gpu, &memory);
    if (memory_code == 0) {
      answer.memory = memory.total;
    } else if (memory_code == 15) {  // NVML_ERROR_GPU_IS_LOST
      answer.error = message_of(memory_code);
    }
    int major = 0;
    int minor_of_version = 0;
    if (library_.call<Handle, int*, int*>("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor_of_version) == 0) {
      answer.compute_capability = std::to_string(major) + "." + std::to_string(minor_of_version);
    }
    FabricOfNvml fabric{};
    if (library_.call<Handle, FabricOfNvml*>("nvmlDeviceGetGpuFabricInfo", gpu, &fabric) == 0) {
      answer.fabric = name_of_fabric(fabric.state);
    }
    ask_links(gpu, answer);
  }

  void ask_links(Handle gpu, GpuAnswer& answer) const {
    constexpr unsigned kMostLinks = 36;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      int is_active = 0;
      if (library_.call<Handle, unsigned, int*>("nvmlDeviceGetNvLinkState", gpu, link, &is_active) != 0) {
        return;  // there are no more
      }
      PciOfNvml remote{};
      if (is_active != 0 &&
          library_.call<Handle, unsigned, PciOfNvml*>("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, link, &remote) == 0) {
        ++answer.nvlinks[remote.address.data()];
      }
    }
  }

  void ask_mig(Handle gpu, GpuAnswer& answer) const {
    unsigned now = 0;
    unsigned pending = 0;
    if (library_.call<Handle, unsigned*, unsigned*>("nvmlDeviceGetMigMode", gpu, &now, &pending) != 0) {
      return;
    }
    answer.is_mig_capable = true;
    answer.mig_enabled = now != 0;
    if (!answer.mig_enabled) {
      return;
    }
    unsigned count = 0;
    library_.call<Handle, unsigned*>("nvmlDeviceGetMaxMigDeviceCount", gpu, &count);
    for (unsigned i = 0; i < count; ++i) {
      Handle mig = nullptr;
      if (library_.call<Handle, unsigned, Handle*>("nvmlDeviceGetMigDeviceHandleByIndex", gpu, i, &mig) != 0) {
        continue;
      }
      MigAnswer part;
      part.uuid = text_of("nvmlDeviceGetUUID", mig);
      library_.call<Handle, unsigned*>("nvmlDeviceGetGpuInstanceId", mig, &part.gpu_instance);
      library_.call<Handle, unsigned*>("nvmlDeviceGetComputeInstanceId", mig, &part.compute_instance);
      part.profile = profile_in(text_of("nvmlDeviceGetName", mig));
      answer.mig.push_back(std::move(part));
    }
  }

  const Library& library_;
  Question question_;
};

}  // namespace

LibraryAnswer load_and_ask(Question question) {
  LibraryAnswer answer;
  const Library nvml("libnvidia-ml.so.1");
  answer.has_nvml = bool(nvml);
  if (nvml) {
    Nvml(nvml, question).ask(answer);
  }
  if (question == Question::mig) {
    return answer;
  }
  const Library cuda("libcuda.so.1");
  answer.has_cuda = bool(cuda);
  if (cuda) {
    answer.cuda_code = cuda.call<unsigned>("cuInit", 0U);
    const char* message = nullptr;
    cuda.call<int, const char**>("cuGetErrorString", answer.cuda_code, &message);
    answer.cuda_message = message == nullptr ? "" : message;
  }
  return answer;
}

}  // namespace hf::nvidia
