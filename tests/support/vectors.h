// Vectors: recorded filters of real runtimes, where the folder with them is there.
#pragma once

#include <string>
#include <vector>

#include "adapters/bytecode/program_file.h"
#include "core/device/device.h"

namespace hf::test {

struct Vector {
  std::string name;
  bytecode::ProgramFile program;
};

// Empty where there is no such folder: a test then skips, saying why. HOLDFAST_VECTORS in the environment names
// another.
std::vector<Vector> read_bpf_vectors();
std::string vectors_folder();

// The numbers a program compares with, their neighbours and the ends: what two readings could disagree on.
std::vector<device::Device> landmark_devices(const bpf::Code& code);

}  // namespace hf::test
