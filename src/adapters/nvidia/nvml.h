// Nvml: the few calls of libnvidia-ml.so.1 and libcuda.so.1 we make, by dlopen: nothing of NVIDIA's is linked.
#pragma once

#include "adapters/nvidia/library.h"

namespace hf::nvidia {

// In this very process: see ask_libraries.
LibraryAnswer load_and_ask();

}  // namespace hf::nvidia
