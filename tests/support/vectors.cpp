#include "support/vectors.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "core/device/rule.h"

namespace hf::test {

std::string vectors_directory() {
  const char* configured = std::getenv("HOLDFAST_VECTORS");
  return configured != nullptr ? configured : HOLDFAST_VECTORS;
}

std::vector<Vector> read_bpf_vectors() {
  std::vector<Vector> vectors;
  const std::filesystem::path directory = std::filesystem::path(vectors_directory()) / "bpf";
  if (!std::filesystem::is_directory(directory)) {
    return vectors;
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Result<bytecode::ProgramFile> program = bytecode::parse_program_file(text);
    if (!program) {
      throw std::runtime_error(entry.path().string() + ": " + program.error().message);
    }
    vectors.push_back({entry.path().stem().string(), *std::move(program)});
  }
  std::ranges::sort(vectors, {}, &Vector::name);
  return vectors;
}

std::vector<device::Device> landmark_devices(const bpf::Code& code) {
  std::set<std::uint32_t> numbers = {0, 1, device::kLastMajor, device::kLastMinor, device::kLastNumber};
  for (const bpf::Instruction& at : code) {
    if (bpf::is_jump_class(at) && at.imm >= 0) {
      const auto number = std::uint32_t(at.imm);
      numbers.insert({number - (number > 0 ? 1 : 0), number, number + 1});
    }
  }
  std::vector<device::Device> devices;
  for (const std::uint32_t major : numbers) {
    for (const std::uint32_t minor : numbers) {
      devices.push_back({device::Kind::block, major, minor});
      devices.push_back({device::Kind::character, major, minor});
    }
  }
  return devices;
}

}  // namespace hf::test
