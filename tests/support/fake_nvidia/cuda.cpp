// The functions of libcuda.so.1 that holdfast calls.
#include <array>
#include <utility>

#include "settings.h"

extern "C" {

int cuInit(unsigned /*flags*/) { return hf::fake_nvidia::setting("HOLDFAST_FAKE_CUDA_ERROR", 0); }

int cuGetErrorString(int code, const char** message) {
  constexpr std::array<std::pair<int, const char*>, 5> kMessages = {
      {{0, "no error"},
       {100, "no CUDA-capable device is detected"},
       {802, "system not yet initialized"},
       {803,
        "system has unsupported display driver / cuda driver "
        "combination"},
       {999, "unknown error"}}};
  for (const auto& [number, text] : kMessages) {
    if (number == code) {
      *message = text;
      return 0;
    }
  }
  *message = nullptr;
  return 1;  // CUDA_ERROR_INVALID_VALUE
}

}  // extern "C"
