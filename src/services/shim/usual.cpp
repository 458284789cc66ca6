#include "services/shim/usual.h"

#include <algorithm>
#include <array>

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/bare.h"
#include "kernel/bare_call.h"

namespace hf::shim {
namespace {

// Engines start us with little or no PATH.
constexpr std::array<std::string_view, 6> kUsualFolders = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                           "/usr/bin",        "/sbin",          "/bin"};

bool try_folder(std::string_view folder, std::string_view name, std::span<char> into) {
  if (folder.empty() || folder[0] != '/' || folder.size() + name.size() + 2 > into.size()) {
    return false;
  }
  std::size_t size = 0;
  for (const std::string_view part : {folder, std::string_view("/"), name}) {
    for (const char letter : part) {
      into[size++] = letter;
    }
  }
  into[size] = '\0';
  return is_program(into.data());
}

bool is_comment(std::string_view line) {
  std::size_t first = 0;
  while (first < line.size() && (line[first] == ' ' || line[first] == '\t')) {
    ++first;
  }
  return first < line.size() && line[first] == '#';
}

}  // namespace

bool is_program(const char* path) {
  struct stat file;       // NOLINT(cppcoreguidelines-pro-type-member-init): filled by the kernel
  struct stat ourselves;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by the kernel
  if (!kernel::bare_stat(path, file) || !S_ISREG(file.st_mode) || !kernel::bare_access(path, X_OK)) {
    return false;
  }
  const bool is_ours = kernel::bare_stat("/proc/self/exe", ourselves) && file.st_dev == ourselves.st_dev &&
                       file.st_ino == ourselves.st_ino;
  return !is_ours;
}

bool find_in_path(const char* path, std::string_view name, std::span<char> into) {
  std::string_view rest = path == nullptr ? std::string_view() : bare::text_of(path);
  while (!rest.empty()) {
    const std::size_t colon = bare::find(rest, ':');
    if (try_folder(bare::before(rest, colon), name, into)) {
      return true;
    }
    rest = colon == rest.size() ? std::string_view() : bare::from(rest, colon + 1);
  }
  return std::ranges::any_of(kUsualFolders, [&](std::string_view folder) { return try_folder(folder, name, into); });
}

bool find_usual(const char* path, std::span<char> into) {
  return find_in_path(path, "runc", into) || find_in_path(path, "crun", into);
}

bool names_programs(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = bare::find(text, '\n');
    const std::string_view line = bare::before(text, end);
    if (!is_comment(line) && bare::contains(line, "programs")) {
      return true;
    }
    text = end == text.size() ? std::string_view() : bare::from(text, end + 1);
  }
  return false;
}

}  // namespace hf::shim
