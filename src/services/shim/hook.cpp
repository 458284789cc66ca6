#include "services/shim/hook.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "adapters/nvidia/loader_cache.h"
#include "adapters/oci/hook_state.h"
#include "adapters/oci/spec.h"
#include "core/base/text.h"
#include "kernel/file.h"
#include "kernel/inside.h"
#include "kernel/sandbox.h"

namespace hf::shim {
namespace {

constexpr const char* kCompat = "/usr/local/cuda/compat";
constexpr const char* kCacheDirectory = "/etc";
constexpr const char* kCacheName = "ld.so.cache";
constexpr std::chrono::milliseconds kLongestWork{5'000};
constexpr std::chrono::milliseconds kLongestCache{20'000};  // ldconfig reads every library of the image
constexpr std::size_t kMostSpec = std::size_t(512) << 20U;

// The host's own. On Ubuntu the usual name is a script.
kernel::Fd open_ldconfig() {
  for (const char* path : {"/sbin/ldconfig.real", "/usr/sbin/ldconfig.real", "/sbin/ldconfig", "/usr/sbin/ldconfig"}) {
    kernel::Fd file(::open(path, O_RDONLY | O_CLOEXEC));
    std::array<char, SELFMAG> magic{};
    if (file && ::pread(file.get(), magic.data(), magic.size(), 0) == ssize_t(magic.size()) &&
        std::string_view(magic.data(), magic.size()) == std::string_view(ELFMAG, SELFMAG)) {
      return file;
    }
  }
  return {};
}

// In the sandbox. The directories that hold libraries, one a line: those that are there, with the image's own newer
// CUDA first.
Result<std::string> prepare_libraries(const HookWords& words) {
  const kernel::Fd root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  for (const HookWords::Link& link : words.links) {
    TRY(kernel::make_link_inside(root.get(), link.path, link.target));
  }
  std::string found = find_compat_folder(root.get(), words.driver_version);
  for (const std::string& folder : words.folders) {
    if (kernel::open_inside(root.get(), folder, O_PATH | O_DIRECTORY)) {
      found += (found.empty() ? "" : "\n") + folder;
    }
  }
  return found;
}

Result<std::string> make_cache(int root, const kernel::Fd& ldconfig, const std::vector<std::string>& folders) {
  const auto arguments = [&folders](const std::string& result) {
    std::vector<std::string> all = {"ldconfig", "-X", "-i", "-C", result, "-f", "/etc/ld.so.conf"};
    all.insert(all.end(), folders.begin(), folders.end());
    return all;
  };
  Result<std::string> cache = kernel::run_program_in_sandbox(root, {ldconfig, arguments}, kLongestCache);
  if (!cache) {
    return fail(cache.error().code, "write the loader's cache of the container: " + cache.error().message);
  }
  TRY(check_cache(*cache));
  return cache;
}

// In the sandbox.
Result<std::string> write_cache(const std::string& cache) {
  const kernel::Fd root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  Result<kernel::Fd> directory = kernel::open_directory_inside(root.get(), kCacheDirectory);
  if (!directory && directory.error().code == std::errc::no_such_file_or_directory) {
    (void)TRY(kernel::make_folder_inside(root.get(), kCacheDirectory));
    directory = kernel::open_directory_inside(root.get(), kCacheDirectory);
  }
  if (!directory && directory.error().code == std::errc::cross_device_link) {
    return std::string();  // /etc is a volume, and not the image's
  }
  if (!directory) {
    return fail(directory.error().code, "write the loader's cache of the container: " + directory.error().message);
  }
  TRY(kernel::replace_file(directory->get(), kCacheName, {cache, 0644}));
  return std::string();
}

Result<void> set_up_libraries(int root, const HookWords& words) {
  const std::string found =
      TRY(kernel::run_in_sandbox(root, [&words] { return prepare_libraries(words); }, kLongestWork));
  const kernel::Fd ldconfig = open_ldconfig();
  if (found.empty() || words.folders.empty() || !ldconfig) {
    return {};
  }
  std::vector<std::string> folders;
  for (const std::string_view line : split(std::string_view(found), '\n')) {
    folders.emplace_back(line);
  }
  const std::string cache = TRY(make_cache(root, ldconfig, folders));
  (void)TRY(kernel::run_in_sandbox(root, [&cache] { return write_cache(cache); }, kLongestWork));
  return {};
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
  const std::string root = TRY(oci::parse_root(TRY(kernel::read_start(AT_FDCWD, file, kMostSpec))));
  const std::string path = root.starts_with('/') ? root : state.bundle + "/" + root;
  if (root.empty()) {
    return fail(std::errc::invalid_argument, file + " names no root");
  }
  return kernel::open_directory(AT_FDCWD, path);
}

Result<void> carry_out(const HookWords& words) {
  const oci::HookState state = TRY(oci::parse_hook_state(TRY(kernel::read_input())));
  const kernel::Fd root = TRY(open_root_of(state, words.spec));
  TRY(set_up_libraries(root.get(), words));
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
  if (words.empty() || words[0] != "create-container") {  // other stages run in the host's mount namespace
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

Result<void> check_cache(std::string_view cache) {
  const auto is_odd = [](std::string_view text) {
    return text.find("..") != std::string_view::npos || printable(text) != text;
  };
  for (const nvidia::CachedLibrary& library : nvidia::parse_loader_cache(cache)) {
    if (library.name.find('/') != std::string_view::npos || is_odd(library.name) || is_odd(library.path) ||
        !library.path.starts_with('/')) {
      return fail(std::errc::invalid_argument, "the image has a library with an impossible name: " +
                                                   quote(library.name) + " at " + quote(library.path));
    }
  }
  return {};
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
    (void)std::fprintf(stderr, "holdfast-runtime: hook: %s\n", printable(done.error().message).c_str());
    return parsed ? 1 : 2;
  }
  return 0;
}

}  // namespace hf::shim
