// Nvml: the few calls into libnvidia-ml.so.1 and libcuda.so.1 that holdfast makes. The libraries are loaded with
// dlopen, so that holdfast links nothing of NVIDIA's.
#pragma once

#include "adapters/nvidia/library.h"

namespace hf::nvidia {

// Loads the libraries into the calling process, where they may crash or hang: see ask_libraries.
LibraryAnswer load_and_ask(Question question);

}  // namespace hf::nvidia
