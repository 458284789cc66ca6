// What is none of our business is handed on before this program has really started: before its libraries have made a
// single object, and before the C library has asked the processor what it is (CPUID), which on a virtual machine its
// host has to answer. That takes longer than all that is left to do. All that runs here is bare (core/base/bare.h).
#include <array>
#include <climits>

#include <unistd.h>

#include "adapters/config/config.h"
#include "adapters/oci/command_line.h"
#include "core/base/bare.h"
#include "kernel/bare_call.h"
#include "services/shim/usual.h"

#if !defined(__SANITIZE_ADDRESS__)  // which must come first itself

namespace {

// Only the usual programs are found without reading YAML.
bool is_usual() {
  if (hf::kernel::bare_access(hf::config::kDropIns, F_OK)) {
    return false;
  }
  std::array<char, 16384> text;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by the kernel
  const long size = hf::kernel::bare_read(hf::config::kFile, text);
  return size >= 0 && std::size_t(size) < text.size() && !hf::shim::names_programs({text.data(), std::size_t(size)});
}

const char* find_path(char** environment) {
  constexpr std::string_view kPath = "PATH=";
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = hf::bare::text_of(*environment);
    if (entry.size() >= kPath.size() && hf::bare::is_same(hf::bare::before(entry, kPath.size()), kPath)) {
      return *environment + kPath.size();
    }
  }
  return nullptr;
}

void hand_on(int count, char** words, char** environment) {
  std::array<char, PATH_MAX> program;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled where it is used
  const bool is_ours = count < 2 || !hf::oci::is_passed_on({words + 1, std::size_t(count) - 1});
  if (is_ours || !is_usual() || !hf::shim::find_usual(find_path(environment), program)) {
    return;
  }
  char* const ourselves = words[0];
  words[0] = program.data();
  hf::kernel::bare_exec(program.data(), words, environment);
  words[0] = ourselves;  // whatever went wrong, the long way has words for it
}

#if !defined(__x86_64__)
using Start = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] const Start kFirst = hand_on;
#endif

}  // namespace

#if defined(__x86_64__)

// The stack as the kernel leaves it to a program: a count, that many words, none, the environment, none.
extern "C" [[gnu::used]] void holdfast_hand_on(long* stack) {
  char** const words = reinterpret_cast<char**>(stack + 1);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  hand_on(int(*stack), words, words + *stack + 1);
}

// The entry point (see CMakeLists.txt): the C library's own, _start, finds stack and registers as the kernel left them.
asm(R"(
  .globl holdfast_start
  .type holdfast_start, @function
holdfast_start:
  endbr64
  xorl %ebp, %ebp
  movq %rsp, %rbx
  movq %rdx, %r12
  movq %rsp, %rdi
  andq $-16, %rsp
  call holdfast_hand_on
  movq %rbx, %rsp
  movq %r12, %rdx
  jmp _start
)");

#endif
#endif
