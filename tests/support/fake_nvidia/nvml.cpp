// The functions of libnvidia-ml.so.1 that holdfast calls, with the signatures of nvml.h.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "settings.h"

namespace {

using hf::fake_nvidia::setting;

enum : int { kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6, kLost = 15 };

constexpr int kMostGpus = 16;
constexpr int kMigSlots = 7;

struct Gpu {
  int index = 0;
  int mig = -1;  // which MIG device of the GPU; -1: the GPU itself
};

// Handles point into this array: GPU 3 is at [3][0], its MIG device 1 at [3][2].
std::array<std::array<Gpu, kMigSlots + 1>, kMostGpus>& gpus() {
  static std::array<std::array<Gpu, kMigSlots + 1>, kMostGpus> made = [] {
    std::array<std::array<Gpu, kMigSlots + 1>, kMostGpus> all{};
    for (int index = 0; index < kMostGpus; ++index) {
      for (int mig = -1; mig < kMigSlots; ++mig) {
        all[std::size_t(index)][std::size_t(mig + 1)] = {index, mig};
      }
    }
    return all;
  }();
  return made;
}

int count() { return setting("HOLDFAST_FAKE_GPUS", 1); }
bool has_mig(const Gpu& gpu) { return setting("HOLDFAST_FAKE_MIG", -1) == gpu.index; }
bool is_lost(int index) { return setting("HOLDFAST_FAKE_LOST", -1) == index; }
// A GPU that falls off the bus while it is queried: its handle can be had, its memory cannot.
bool is_half_lost(const Gpu& gpu) { return setting("HOLDFAST_FAKE_HALF_LOST", -1) == gpu.index; }

int put(char* text, unsigned size, const std::string& value) {
  if (value.size() >= size) {
    return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  }
  std::memcpy(text, value.c_str(), value.size() + 1);
  return kSuccess;
}

std::string numbered(const char* form, int number) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), form, unsigned(number));
  return text.data();
}

struct Pci {
  std::array<char, 16> short_address;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> address;
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Fabric {
  std::array<unsigned char, 16> cluster;
  int status;
  unsigned clique;
  unsigned char state;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  hf::fake_nvidia::hang_or_crash();
  return setting("HOLDFAST_FAKE_NVML_ERROR", kSuccess);
}

int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int code) {
  constexpr std::array<std::pair<int, const char*>, 9> kMessages = {{{0, "Success"},
                                                                     {3, "Not Supported"},
                                                                     {4, "Insufficient Permissions"},
                                                                     {6, "Not Found"},
                                                                     {9, "Driver Not Loaded"},
                                                                     {15, "GPU is lost"},
                                                                     {17, "Operating System"},
                                                                     {18, "Driver/library version mismatch"},
                                                                     {999, "Unknown Error"}}};
  for (const auto& [number, message] : kMessages) {
    if (number == code) {
      return message;
    }
  }
  return "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) { return put(text, size, "580.159.03"); }
int nvmlSystemGetNVMLVersion(char* text, unsigned size) { return put(text, size, "13.580.159.03"); }

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13010;
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* number) {
  *number = unsigned(count());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu** gpu) {
  if (int(index) >= count() || index >= kMostGpus) {
    return kInvalid;
  }
  if (is_lost(int(index))) {
    return kLost;
  }
  *gpu = gpus()[index].data();
  return kSuccess;
}

int nvmlDeviceGetUUID(Gpu* gpu, char* text, unsigned size) {
  if (gpu->mig < 0) {
    return put(text, size, numbered("GPU-00000000-0000-0000-0000-%012x", gpu->index));
  }
  return put(text, size, numbered("MIG-00000000-0000-0000-0000-%012x", gpu->index * 16 + gpu->mig));
}

int nvmlDeviceGetName(Gpu* /*gpu*/, char* text, unsigned size) { return put(text, size, "NVIDIA H200"); }

int nvmlDeviceGetMinorNumber(Gpu* gpu, unsigned* minor) {
  *minor = unsigned(gpu->index);
  return kSuccess;
}

int nvmlDeviceGetPciInfo_v3(Gpu* gpu, Pci* pci) {
  *pci = {};
  const std::string address = numbered("00000000:%02X:00.0", 0xca + gpu->index);
  std::memcpy(pci->address.data(), address.data(), address.size());
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(Gpu* gpu, Memory* memory) {
  if (is_half_lost(*gpu)) {
    return kLost;
  }
  *memory = {150754820096ULL, 150754820096ULL, 0};
  return kSuccess;
}

int nvmlDeviceGetGpuFabricInfo(Gpu* /*gpu*/, Fabric* fabric) {
  *fabric = {};
  const int state = setting("HOLDFAST_FAKE_FABRIC", -1);
  fabric->state = static_cast<unsigned char>(state);
  return state < 0 ? kNotSupported : kSuccess;
}

int nvmlDeviceGetCudaComputeCapability(Gpu* /*gpu*/, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return kSuccess;
}

int nvmlDeviceGetMigMode(Gpu* gpu, unsigned* now, unsigned* pending) {
  *now = *pending = has_mig(*gpu) ? 1 : 0;
  return kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(Gpu* /*gpu*/, unsigned* number) {
  *number = kMigSlots;
  return kSuccess;
}

// Two of the seven slots are in use, with a gap between them, or none.
int nvmlDeviceGetMigDeviceHandleByIndex(Gpu* gpu, unsigned slot, Gpu** mig) {
  if ((slot != 0 && slot != 2) || setting("HOLDFAST_FAKE_MIG_EMPTY", 0) != 0) {
    return kNotFound;
  }
  *mig = &gpus()[std::size_t(gpu->index)][slot + 1];
  return kSuccess;
}

int nvmlDeviceGetGpuInstanceId(Gpu* gpu, unsigned* number) {
  *number = unsigned(gpu->mig + 3);
  return kSuccess;
}

int nvmlDeviceGetComputeInstanceId(Gpu* /*gpu*/, unsigned* number) {
  *number = 0;
  return kSuccess;
}

}  // extern "C"
