// What is none of our business is handed on before this program has really started: before its libraries have made a
// single object, which takes longer than all that is left to do.
#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "adapters/config/config.h"
#include "adapters/oci/command_line.h"
#include "services/shim/low_level.h"

#if !defined(__SANITIZE_ADDRESS__)  // which must come first itself

namespace {

// Only the usual programs are found without reading YAML.
bool is_usual() {
  if (::access(hf::config::kDropIns, F_OK) == 0) {
    return false;
  }
  const int file = ::open(hf::config::kFile, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return true;
  }
  std::array<char, 16384> text;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by the kernel
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  return size >= 0 && std::size_t(size) < text.size() &&
         !hf::shim::names_programs(std::string_view(text.data(), std::size_t(size)));
}

const char* find_path(char** environment) {
  constexpr std::string_view kPath = "PATH=";
  for (; *environment != nullptr; ++environment) {
    if (std::strncmp(*environment, kPath.data(), kPath.size()) == 0) {
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
  ::execve(program.data(), words, environment);
  words[0] = ourselves;  // whatever went wrong, the long way has words for it
}

using Start = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] const Start kFirst = hand_on;

}  // namespace

#endif
