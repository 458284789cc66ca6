#include "adapters/nvidia/library.h"

#include <cerrno>
#include <cstdlib>
#include <map>

#include <sys/wait.h>

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLimit = 20s;  // sanitizer builds are slow

using Variables = std::map<std::string, std::string>;

// Sets the environment variables that control the libraries of tests/support/fake_nvidia, and unsets them at the end.
class FakeNvidia {
 public:
  explicit FakeNvidia(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) {
      ::setenv(("HOLDFAST_FAKE_" + name).c_str(), value.c_str(), 1);
    }
  }
  FakeNvidia(const FakeNvidia&) = delete;
  FakeNvidia& operator=(const FakeNvidia&) = delete;
  ~FakeNvidia() {
    for (const auto& [name, value] : variables_) {
      ::unsetenv(("HOLDFAST_FAKE_" + name).c_str());
    }
  }

 private:
  Variables variables_;
};

bool has_child() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

device::Unit unit_at(const std::string& pci) {
  device::Unit unit;
  unit.device_class = "nvidia";
  unit.name = "0";
  unit.pci = pci;
  return unit;
}

TEST(Libraries, ReportEveryGpu) {
  const FakeNvidia fake(Variables{{"GPUS", "2"}});
  const Result<LibraryAnswer> answer = ask_libraries(kLimit);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->has_nvml);
  EXPECT_EQ(answer->nvml_code, 0);
  EXPECT_EQ(answer->driver_version, "580.159.03");
  EXPECT_EQ(answer->nvml_version, "13.580.159.03");
  EXPECT_EQ(answer->cuda_version, "13.1");
  EXPECT_TRUE(answer->has_cuda);
  EXPECT_EQ(answer->cuda_code, 0);
  ASSERT_EQ(answer->gpus.size(), 2U);
  const GpuAnswer& second = answer->gpus[1];
  EXPECT_EQ(second.index, 1U);
  EXPECT_EQ(second.uuid, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(second.name, "NVIDIA H200");
  EXPECT_EQ(second.pci, "00000000:CB:00.0");
  EXPECT_EQ(second.minor, 1U);
  EXPECT_EQ(second.memory, 150754820096U);
  EXPECT_FALSE(second.mig_enabled);
  EXPECT_EQ(second.error, "");
  EXPECT_EQ(second.fabric, "");
}

TEST(Libraries, AreAskedForMigDevicesWithoutCuda) {
  const FakeNvidia fake(Variables{{"MIG", "0"}, {"CUDA_ERROR", "999"}});
  const Result<LibraryAnswer> answer = ask_libraries(kLimit, Question::mig);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(answer->has_cuda);
  ASSERT_EQ(answer->gpus.size(), 1U);
  EXPECT_TRUE(answer->gpus[0].mig_enabled);
  EXPECT_EQ(answer->gpus[0].mig.size(), 2U);
  EXPECT_FALSE(answer->gpus[0].memory);
}

TEST(Libraries, MayReportNoGpu) {
  const FakeNvidia fake(Variables{{"GPUS", "0"}, {"CUDA_ERROR", "100"}});
  const Result<LibraryAnswer> answer = ask_libraries(kLimit);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->nvml_code, 0);
  EXPECT_TRUE(answer->gpus.empty());
  EXPECT_EQ(answer->cuda_code, 100);
  EXPECT_EQ(answer->cuda_message, "no CUDA-capable device is detected");
}

TEST(Libraries, ReportTheirOwnErrorMessages) {
  struct Case {
    int code;
    const char* message;
    const char* meaning;
  };
  for (const Case& entry :
       {Case{4, "Insufficient Permissions", "EACCES"}, Case{9, "Driver Not Loaded", "not loaded"},
        Case{15, "GPU is lost", "off the bus"}, Case{17, "Operating System", "operating system"},
        Case{18, "Driver/library version mismatch", "different versions"}, Case{999, "Unknown Error", "EPERM"}}) {
    const FakeNvidia fake(Variables{{"NVML_ERROR", std::to_string(entry.code)}});
    const Result<LibraryAnswer> answer = ask_libraries(kLimit);
    ASSERT_TRUE(answer) << entry.code;
    EXPECT_EQ(answer->nvml_code, entry.code);
    EXPECT_EQ(answer->nvml_message, entry.message);
    EXPECT_TRUE(answer->gpus.empty()) << entry.code;
    device::Inventory inventory;
    add_to(inventory, *answer);
    const device::DriverState* state = inventory.state_of("nvidia");
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->library_error, std::string("NVML: ") + entry.message + " (" + std::to_string(entry.code) + ")");
    EXPECT_NE(state->meaning.find(entry.meaning), std::string::npos) << state->meaning;
  }
}

TEST(Libraries, ReportTheErrorOfCudaWhereNvmlSucceeds) {
  struct Case {
    int code;
    const char* meaning;
  };
  for (const Case& entry : {Case{100, "no usable GPU"}, Case{802, "fabric"}, Case{803, "different versions"},
                            Case{999, "nvidia-uvm"}, Case{30, "nvidia-uvm"}}) {
    const FakeNvidia fake(Variables{{"CUDA_ERROR", std::to_string(entry.code)}});
    const Result<LibraryAnswer> answer = ask_libraries(kLimit);
    ASSERT_TRUE(answer) << entry.code;
    EXPECT_EQ(answer->cuda_code, entry.code);
    device::Inventory inventory;
    add_to(inventory, *answer);
    EXPECT_TRUE(inventory.state_of("nvidia")->library_error.starts_with("CUDA: ")) << entry.code;
    EXPECT_NE(inventory.state_of("nvidia")->meaning.find(entry.meaning), std::string::npos) << entry.code;
  }
}

TEST(Libraries, ThatHangAreStoppedAtTheLimit) {
  const FakeNvidia fake(Variables{{"HANG", "1"}});
  const auto start = std::chrono::steady_clock::now();
  const Result<LibraryAnswer> answer = ask_libraries(300ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, std::errc::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_FALSE(has_child()) << "a zombie is left";
}

TEST(Libraries, ThatCrashAreAnErrorOfTheChildOnly) {
  const FakeNvidia fake(Variables{{"CRASH", "1"}});
  const Result<LibraryAnswer> answer = ask_libraries(kLimit);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, std::errc::interrupted);
  EXPECT_TRUE(answer.error().message.starts_with("ask NVIDIA's libraries")) << answer.error().message;
  EXPECT_FALSE(has_child());
}

TEST(Libraries, ReportMigDevices) {
  const FakeNvidia fake(Variables{{"GPUS", "2"}, {"MIG", "1"}});
  const Result<LibraryAnswer> answer = ask_libraries(kLimit);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(answer->gpus[0].mig_enabled);
  EXPECT_TRUE(answer->gpus[1].mig_enabled);
  EXPECT_TRUE(answer->gpus[1].is_mig_capable);
  EXPECT_EQ(answer->gpus[1].compute_capability, "9.0");
  ASSERT_EQ(answer->gpus[1].mig.size(), 2U);
  EXPECT_EQ(answer->gpus[1].mig[0].uuid, "MIG-00000000-0000-0000-0000-000000000010");
  EXPECT_EQ(answer->gpus[1].mig[1].gpu_instance, 5U);
  EXPECT_EQ(answer->gpus[1].mig[1].compute_instance, 0U);
}

TEST(Libraries, ReportALostGpuAmongOthers) {
  const FakeNvidia fake(Variables{{"GPUS", "3"}, {"LOST", "1"}, {"HALF_LOST", "2"}});
  const Result<LibraryAnswer> answer = ask_libraries(kLimit);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->gpus.size(), 3U);
  EXPECT_EQ(answer->gpus[0].error, "");
  EXPECT_EQ(answer->gpus[1].error, "GPU is lost");
  EXPECT_EQ(answer->gpus[2].error, "GPU is lost");
  device::Inventory inventory;
  inventory.units.push_back(unit_at("0000:ca:00.0"));
  inventory.units.push_back(unit_at("0000:cc:00.0"));
  add_to(inventory, *answer);
  EXPECT_EQ(inventory.notes,
            std::vector<std::string>{"NVML was asked and CUDA initialised: that wakes a sleeping GPU"});
  EXPECT_EQ(inventory.units[0].health, device::Health::good);
  EXPECT_EQ(inventory.units[1].health, device::Health::bad);
  EXPECT_EQ(inventory.units[1].health_text, "GPU is lost");
}

TEST(Libraries, ReportTheStateOfTheFabric) {
  for (const auto& [state, fabric, health] :
       {std::tuple{"0", "not supported", device::Health::good}, std::tuple{"1", "not started", device::Health::bad},
        std::tuple{"2", "in progress", device::Health::bad}, std::tuple{"3", "completed", device::Health::good},
        std::tuple{"9", "unknown", device::Health::bad}}) {
    const FakeNvidia fake(Variables{{"FABRIC", state}});
    const Result<LibraryAnswer> answer = ask_libraries(kLimit);
    ASSERT_TRUE(answer) << state;
    EXPECT_EQ(answer->gpus.at(0).fabric, fabric);
    device::Inventory inventory;
    add_to(inventory, *answer);
    EXPECT_EQ(inventory.units.at(0).health, health) << state;
  }
}

LibraryAnswer full_answer() {
  LibraryAnswer answer;
  answer.has_nvml = true;
  answer.nvml_message = "Success";
  answer.driver_version = "580.159.03";
  answer.cuda_version = "13.0";
  answer.has_cuda = true;
  answer.cuda_code = 999;
  answer.cuda_message = "unknown error";
  GpuAnswer gpu;
  gpu.index = 3;
  gpu.uuid = "GPU-1";
  gpu.name = "NVIDIA H200";
  gpu.pci = "00000000:65:00.0";
  gpu.memory = 1ULL << 40;
  gpu.compute_capability = "9.0";
  gpu.is_mig_capable = true;
  gpu.mig_enabled = true;
  gpu.mig = {{"MIG-1", 3, 0}, {"MIG-2", 5, 1}};
  gpu.fabric = "completed";
  answer.gpus = {gpu, GpuAnswer{}};
  return answer;
}

TEST(LibraryAnswer, IsTheSameAfterWritingAndParsing) {
  const std::string text = render_answer(full_answer());
  EXPECT_EQ(render_answer(parse_answer(text)), text);
  const LibraryAnswer read = parse_answer(text);
  ASSERT_EQ(read.gpus.size(), 2U);
  EXPECT_EQ(read.gpus[0].memory, 1ULL << 40);
  EXPECT_EQ(read.gpus[0].minor, std::nullopt);
  EXPECT_EQ(read.gpus[0].mig.size(), 2U);
  EXPECT_EQ(read.gpus[0].compute_capability, "9.0");
  EXPECT_TRUE(read.gpus[0].is_mig_capable);
  EXPECT_FALSE(read.gpus[1].is_mig_capable);
  EXPECT_EQ(read.gpus[1].memory, std::nullopt);
}

TEST(LibraryAnswer, WritesAMessageWithANewlineOnOneLine) {
  LibraryAnswer answer;
  answer.has_nvml = true;
  answer.nvml_message = "two\nnvml 7";
  EXPECT_EQ(parse_answer(render_answer(answer)).nvml_code, 0);
  EXPECT_EQ(parse_answer(render_answer(answer)).nvml_message, "two nvml 7");
}

// A library too old to have nvmlInit_v2 gives the code -1; read as 0 it would look like a success.
TEST(LibraryAnswer, KeepsTheCodeOfAFunctionThatIsNotThere) {
  LibraryAnswer answer;
  answer.has_nvml = true;
  answer.has_cuda = true;
  answer.nvml_code = -1;
  answer.cuda_code = -1;
  EXPECT_EQ(parse_answer(render_answer(answer)).nvml_code, -1);
  EXPECT_EQ(parse_answer(render_answer(answer)).cuda_code, -1);
}

TEST(LibraryAnswer, SkipsUnknownLines) {
  for (const char* text : {"", "\n", "uuid GPU-1", "mig a b", "nvml", "nvml x", "gpu", "gpu 0\nmig only two",
                           "gpu 0\nminor -1\nmemory x", "gpu 99999999999999999999", "\xff\xfe"}) {
    const LibraryAnswer answer = parse_answer(text);
    EXPECT_LE(answer.gpus.size(), 1U) << text;
  }
  EXPECT_EQ(parse_answer("gpu 0\nmemory x").gpus[0].memory, std::nullopt);
}

TEST(LibraryAnswer, IsAddedToTheGpusThatProcLists) {
  LibraryAnswer answer = full_answer();
  answer.gpus.resize(1);
  device::Inventory inventory;
  inventory.units.push_back(unit_at("0000:65:00.0"));
  add_to(inventory, answer);
  ASSERT_EQ(inventory.units.size(), 1U);
  EXPECT_EQ(inventory.units[0].uuid, "GPU-1");
  EXPECT_EQ(inventory.units[0].mig.size(), 2U);
  EXPECT_EQ(inventory.units[0].health, device::Health::good);
  ASSERT_EQ(inventory.states.size(), 1U);
  EXPECT_EQ(inventory.states[0].library_error, "CUDA: unknown error (999)");
}

TEST(LibraryAnswer, WithoutALibraryAddsNothing) {
  device::Inventory inventory;
  add_to(inventory, LibraryAnswer{});
  EXPECT_TRUE(inventory.states.empty());
}

TEST(LibraryErrors, WithUnknownCodesHaveNoExplanation) {
  for (const int code : {0, 1, 2, 3, -1, 12345}) {
    EXPECT_EQ(meaning_of_nvml(code), "") << code;
    EXPECT_EQ(meaning_of_cuda(code), "") << code;
  }
}

// NVML gives no handle for a lost GPU, so neither its UUID nor its address is known: only its index.
TEST(LibraryAnswer, OfALostGpuDoesNotAddASecondUnit) {
  LibraryAnswer answer = full_answer();
  answer.gpus = {GpuAnswer{}};
  answer.gpus[0].error = "GPU is lost";
  device::Inventory inventory;
  inventory.units.push_back(unit_at("0000:65:00.0"));
  add_to(inventory, answer);
  ASSERT_EQ(inventory.units.size(), 1U);
  EXPECT_EQ(inventory.units[0].health, device::Health::bad);
}

}  // namespace
}  // namespace hf::nvidia
