// Library: what NVIDIA's own libraries, NVML and libcuda, report about the GPUs. Where they are installed, they
// are loaded in a child process, since they may hang, crash and use much memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/inventory.h"

namespace hf::nvidia {

struct MigAnswer {
  std::string uuid;
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::string profile = {};  // "1g.10gb"
};

struct GpuAnswer {
  std::uint32_t index = 0;
  std::string uuid;
  std::string name;
  std::string pci;
  std::optional<std::uint32_t> minor;
  std::optional<std::uint64_t> memory;
  std::string compute_capability;  // "9.0"
  bool is_mig_capable = false;
  bool mig_enabled = false;
  std::string error;   // the library's message about this GPU, "" where the query succeeded
  std::string fabric;  // state of the NVLink fabric: "completed", "not started", …; "" where there is none
  std::vector<MigAnswer> mig;
  std::map<std::string, unsigned> nvlinks;  // active ones, by the PCI address of the other end
};

struct LibraryAnswer {
  bool has_nvml = false;
  int nvml_code = 0;
  std::string nvml_message;  // the library's text for nvml_code
  std::string driver_version;
  std::string nvml_version;
  std::string cuda_version;
  std::vector<GpuAnswer> gpus;
  bool has_cuda = false;
  int cuda_code = 0;
  std::string cuda_message;
};

// mig: NVML alone, and what tells a GPU's MIG devices. Initialising CUDA takes ten times as long.
enum class Question : std::uint8_t { everything, mig };
Result<LibraryAnswer> ask_libraries(std::chrono::milliseconds limit, Question question = Question::everything);

// What an error code of NVML or of CUDA means for a user who runs containers; "" where that is not known.
std::string meaning_of_nvml(int code);
std::string meaning_of_cuda(int code);

// Adds what the libraries report, or their error, to the GPUs that /proc lists.
void add_to(device::Inventory& inventory, const LibraryAnswer& answer);

// The text that the child process sends to its parent, lines of "key value…"; declared here for the tests.
std::string render_answer(const LibraryAnswer& answer);
LibraryAnswer parse_answer(std::string_view text);

}  // namespace hf::nvidia
