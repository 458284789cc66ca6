// Vectors: recorded filters of real runtimes, if the directory with them exists.
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

// Empty if there is no such directory: a test then skips, with the reason. HOLDFAST_VECTORS in the environment names
// another directory.
std::vector<Vector> read_bpf_vectors();
std::string vectors_directory();

// Devices with the numbers a program compares with, their neighbours and the smallest and largest numbers: two
// interpretations of the program would differ there.
std::vector<device::Device> landmark_devices(const bpf::Code& code);

}  // namespace hf::test
