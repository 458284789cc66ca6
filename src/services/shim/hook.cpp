#include "services/shim/hook.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/oci/hook_state.h"
#include "adapters/oci/spec.h"
#include "core/base/text.h"
#include "kernel/arguments.h"
#include "kernel/file.h"
#include "kernel/inside.h"

namespace hf::shim {
namespace {

constexpr const char* kCompat = "/usr/local/cuda/compat";
constexpr unsigned kLongestCache = 20;  // seconds

bool is_elf(const kernel::Fd& file) {
  std::array<char, SELFMAG> magic{};
  return ::pread(file.get(), magic.data(), magic.size(), 0) == ssize_t(magic.size()) &&
         std::string_view(magic.data(), magic.size()) == std::string_view(ELFMAG, SELFMAG);
}

// The host's own: whatever program the image has in its place is not run. On Ubuntu the usual name is a script.
kernel::Fd open_ldconfig() {
  for (const char* path : {"/sbin/ldconfig.real", "/usr/sbin/ldconfig.real", "/sbin/ldconfig", "/usr/sbin/ldconfig"}) {
    kernel::Fd file(::open(path, O_RDONLY | O_CLOEXEC));
    if (file && is_elf(file)) {
      return file;
    }
  }
  return {};
}

[[noreturn]] void become_ldconfig(int root, int program, char* const* arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kLongestCache);
  std::array<char*, 1> environment = {nullptr};
  const int nowhere = ::open("/dev/null", O_RDWR);
  if (nowhere < 0) {
    ::_exit(1);
  }
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    (void)::dup2(nowhere, file);  // it has a word to say about every odd file of an image
  }
  if (::fchdir(root) == 0 && ::chroot(".") == 0) {
    ::fexecve(program, arguments, environment.data());
  }
  ::_exit(1);
}

// Our memory is lent to the child until it is ldconfig: copying it takes longer. It changes nothing of ours.
// NOLINTBEGIN(bugprone-unsafe-functions,clang-analyzer-*): posix_spawn knows no chroot
pid_t start_ldconfig(int root, int program, char* const* arguments) {
  const pid_t child = ::vfork();
  if (child == 0) {
    become_ldconfig(root, program, arguments);
  }
  return child;
}
// NOLINTEND(bugprone-unsafe-functions,clang-analyzer-*)

Result<void> run_ldconfig(int root, const kernel::Fd& program, const std::vector<std::string>& folders) {
  std::vector<std::string> words = {"ldconfig", "-C", "/etc/ld.so.cache", "-f", "/etc/ld.so.conf"};
  words.insert(words.end(), folders.begin(), folders.end());
  const kernel::Arguments arguments(std::move(words));
  const pid_t child = start_ldconfig(root, program.get(), arguments.get());
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool done = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return done ? Result<void>() : fail(std::errc::io_error, "write the loader's cache of the container");
}

// No file of ours stays in the container but the cache itself, which every image has: the folders are told by words.
Result<void> write_cache(int root, std::vector<std::string> folders) {
  std::erase_if(folders, [root](const std::string& folder) {
    return !kernel::open_inside(root, folder, O_PATH | O_DIRECTORY).has_value();
  });
  const kernel::Fd program = open_ldconfig();
  if (folders.empty() || !program) {
    return {};
  }
  (void)TRY(kernel::make_folder_inside(root, "/etc"));
  return run_ldconfig(root, program, folders);
}

Result<void> keep_device_files(int root) {
  constexpr const char* kParams = "/proc/driver/nvidia/params";
  Result<std::string> text = kernel::read_text(AT_FDCWD, kParams);
  const std::string wish = "ModifyDeviceFiles: 1";
  const std::size_t at = text ? text->find(wish) : std::string::npos;
  if (at == std::string::npos) {
    return {};
  }
  text->replace(at, wish.size(), "ModifyDeviceFiles: 0");
  return kernel::cover_proc_file(root, kParams, *text);
}

Result<kernel::Fd> open_root_of(const oci::HookState& state, const std::string& told) {
  const std::string file = told.empty() ? state.bundle + "/config.json" : told;
  const std::string root = TRY(oci::parse_root(TRY(kernel::read_text(AT_FDCWD, file))));
  const std::string path = root.starts_with('/') ? root : state.bundle + "/" + root;
  if (root.empty()) {
    return fail(std::errc::invalid_argument, file + " names no root");
  }
  return kernel::open_directory(AT_FDCWD, path);
}

Result<void> carry_out(const HookWords& words) {
  const oci::HookState state = TRY(oci::parse_hook_state(TRY(kernel::read_text(AT_FDCWD, "/dev/stdin"))));
  const kernel::Fd root = TRY(open_root_of(state, words.spec));
  for (const HookWords::Link& link : words.links) {
    TRY(kernel::make_link_inside(root.get(), link.path, link.target));
  }
  std::vector<std::string> folders = words.folders;
  const std::string compat = find_compat_folder(root.get(), words.driver_version);
  if (!compat.empty()) {
    folders.insert(folders.begin(), compat);
  }
  TRY(write_cache(root.get(), std::move(folders)));
  return words.keeps_device_files ? keep_device_files(root.get()) : Result<void>();
}

// "libcuda.so.550.54.15": 550; 0 where it is no such name.
std::uint32_t release_of(std::string_view name) {
  constexpr std::string_view kLibrary = "libcuda.so.";
  if (!name.starts_with(kLibrary)) {
    return 0;
  }
  name.remove_prefix(kLibrary.size());
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? 0 : parse_number<std::uint32_t>(name.substr(0, dot)).value_or(0);
}

}  // namespace

Result<HookWords> parse_hook_words(const std::vector<std::string>& words) {
  HookWords parsed;
  if (words.empty() || (words[0] != "create-container" && words[0] != "prestart" && words[0] != "create-runtime")) {
    return fail(std::errc::invalid_argument, "hook wants a stage: create-container");
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--keep-device-files") {
      parsed.keeps_device_files = true;
    } else if (words[i] == "--folder" && has_value) {
      parsed.folders.push_back(words[++i]);
    } else if (words[i] == "--spec" && has_value) {
      parsed.spec = words[++i];
    } else if (words[i] == "--cuda-compat" && has_value) {
      parsed.driver_version = words[++i];
    } else if (words[i] == "--link" && has_value) {
      const std::string& pair = words[++i];
      const std::size_t colons = pair.find("::");
      if (colons == std::string::npos || colons == 0 || colons + 2 == pair.size()) {
        return fail(std::errc::invalid_argument, "--link wants TARGET::PATH, not " + quote(pair));
      }
      parsed.links.push_back({pair.substr(0, colons), pair.substr(colons + 2)});
    } else {
      return fail(std::errc::invalid_argument, "hook knows no " + quote(words[i]) + ", or it lacks its value");
    }
  }
  for (const std::string& folder : parsed.folders) {
    if (!folder.starts_with('/')) {
      return fail(std::errc::invalid_argument, "--folder wants an absolute path, not " + quote(folder));
    }
  }
  return parsed;
}

std::string find_compat_folder(int root, const std::string& driver_version) {
  const auto driver = parse_number<std::uint32_t>(driver_version.substr(0, driver_version.find('.')));
  const Result<kernel::Fd> folder = kernel::open_inside(root, kCompat, O_RDONLY | O_DIRECTORY);
  if (!driver || !folder) {
    return {};
  }
  const std::vector<std::string> names = kernel::list_names(folder->get(), ".");
  const bool is_newer =
      std::ranges::any_of(names, [&driver](const std::string& name) { return release_of(name) > *driver; });
  return is_newer ? kCompat : "";
}

int serve_hook(const std::vector<std::string>& words) {
  const Result<HookWords> parsed = parse_hook_words(words);
  const Result<void> done = parsed ? carry_out(*parsed) : Result<void>(std::unexpected(parsed.error()));
  if (!done) {
    (void)std::fprintf(stderr, "holdfast-runtime: hook: %s\n", done.error().message.c_str());
    return parsed ? 1 : 2;
  }
  return 0;
}

}  // namespace hf::shim
