#include "services/shim/hook.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "adapters/nvidia/graphics_profile.h"
#include "adapters/nvidia/loader_cache.h"
#include "adapters/oci/hook_state.h"
#include "adapters/oci/spec.h"
#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "kernel/process/sandbox.h"

namespace hf::shim {
namespace {

using nvidia::HookOptions;

constexpr const char* kCacheDirectory = "/etc";
constexpr const char* kCacheName = "ld.so.cache";
constexpr std::chrono::milliseconds kSandboxTimeout{5'000};
constexpr std::chrono::milliseconds kCacheTimeout{20'000};  // ldconfig reads every library of the image
constexpr std::size_t kMostSpec = std::size_t(512) << 20U;

// Opens the host's own ldconfig. On Ubuntu /sbin/ldconfig is a script, so only an ELF file is accepted.
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

// Runs in the sandbox.
Result<void> write_graphics_profile(int root) {
  const std::string profile = nvidia::graphics_profile(kernel::list_names(root, "dev"));
  Result<kernel::Fd> directory = kernel::make_directory_inside(root, nvidia::kGraphicsProfileDirectory);
  if (profile.empty() || (!directory && directory.error().code == std::errc::cross_device_link)) {
    return {};  // /etc is a volume rather than part of the image
  }
  const kernel::Fd opened = TRY(std::move(directory));
  return kernel::replace_file(opened.get(), nvidia::kGraphicsProfileName, {profile, 0644});
}

// Runs in the sandbox. Returns the existing directories with libraries, one per line, beginning with the image's own
// newer CUDA.
Result<std::string> prepare_libraries(const HookOptions& options) {
  const kernel::Fd root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  for (const HookOptions::Link& link : options.links) {
    TRY(kernel::make_symlink_inside(root.get(), link.path, link.target));
  }
  if (options.limits_graphics) {
    TRY(write_graphics_profile(root.get()));
  }
  std::string found = find_compat_directory(root.get(), options.driver_version);
  for (const std::string& directory : options.directories) {
    if (kernel::open_inside(root.get(), directory, O_PATH | O_DIRECTORY)) {
      found += (found.empty() ? "" : "\n") + directory;
    }
  }
  return found;
}

Result<std::string> create_cache(int root, const kernel::Fd& ldconfig, const std::vector<std::string>& directories) {
  const auto arguments = [&directories](const std::string& result) {
    std::vector<std::string> all = {"ldconfig", "-X", "-i", "-C", result, "-f", "/etc/ld.so.conf"};
    all.insert(all.end(), directories.begin(), directories.end());
    return all;
  };
  Result<std::string> cache = kernel::run_program_in_sandbox(root, {ldconfig, arguments}, kCacheTimeout);
  if (!cache) {
    return fail(cache.error().code, "write the loader's cache of the container: " + cache.error().message);
  }
  // Names come from the image, and other programs read them. A later format of the host's ldconfig is none of it.
  const Result<nvidia::LoaderCache> parsed = nvidia::parse_loader_cache(*cache);
  if (!parsed && parsed.error().code != std::errc::not_supported) {
    return std::unexpected(parsed.error());
  }
  return cache;
}

// Runs in the sandbox.
Result<std::string> write_cache(const std::string& cache) {
  const kernel::Fd root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  Result<kernel::Fd> directory = kernel::open_directory_inside(root.get(), kCacheDirectory);
  if (!directory && directory.error().code == std::errc::no_such_file_or_directory) {
    (void)TRY(kernel::make_directory_inside(root.get(), kCacheDirectory));
    directory = kernel::open_directory_inside(root.get(), kCacheDirectory);
  }
  if (!directory && directory.error().code == std::errc::cross_device_link) {
    return std::string();  // /etc is a volume rather than part of the image
  }
  if (!directory) {
    return fail(directory.error().code, "write the loader's cache of the container: " + directory.error().message);
  }
  const Result<void> written = kernel::replace_file(directory->get(), kCacheName, {cache, 0644});
  if (!written && written.error().code != std::errc::device_or_resource_busy) {  // busy: something is mounted over it
    return std::unexpected(written.error());
  }
  return std::string();
}

Result<void> set_up_libraries(int root, const HookOptions& options) {
  const std::string found =
      TRY(kernel::run_in_sandbox(root, [&options] { return prepare_libraries(options); }, kSandboxTimeout));
  const kernel::Fd ldconfig = open_ldconfig();
  if (found.empty() || options.directories.empty() || !ldconfig) {
    return {};
  }
  std::vector<std::string> directories;
  for (const std::string_view line : split(std::string_view(found), '\n')) {
    directories.emplace_back(line);
  }
  const std::string cache = TRY(create_cache(root, ldconfig, directories));
  (void)TRY(kernel::run_in_sandbox(root, [&cache] { return write_cache(cache); }, kSandboxTimeout));
  return {};
}

Result<void> keep_device_files(int root) {
  constexpr const char* kParams = "/proc/driver/nvidia/params";
  Result<std::string> text = kernel::read_text(AT_FDCWD, kParams);
  const std::string enabled = "ModifyDeviceFiles: 1";
  const std::size_t at = text ? text->find(enabled) : std::string::npos;
  if (at == std::string::npos) {
    return {};
  }
  text->replace(at, enabled.size(), "ModifyDeviceFiles: 0");
  return kernel::cover_proc_file(root, kParams, *text);
}

Result<kernel::Fd> open_root_of(const oci::HookState& state, const std::string& spec_file) {
  const std::string file = spec_file.empty() ? state.bundle + "/config.json" : spec_file;
  const std::string root = TRY(oci::parse_root(TRY(kernel::read_start(AT_FDCWD, file, kMostSpec))));
  const std::string path = root.starts_with('/') ? root : state.bundle + "/" + root;
  if (root.empty()) {
    return fail(std::errc::invalid_argument, file + " names no root");
  }
  return kernel::open_directory(AT_FDCWD, path);
}

Result<void> run_hook(const HookOptions& options, const Result<std::string>& input) {
  const oci::HookState state = TRY(oci::parse_hook_state(TRY(input)));
  const kernel::Fd root = TRY(open_root_of(state, options.spec));
  const kernel::Fd ours = TRY(kernel::open_directory(AT_FDCWD, "/"));
  const bool is_hosts = kernel::is_same_directory(root.get(), ours.get());  // the host's files stay as they are
  const Result<void> done =
      is_hosts || !options.changes_root() ? Result<void>() : set_up_libraries(root.get(), options);
  // On a read-only root file system the container starts with the mounts alone.
  if (!done && done.error().code != std::errc::read_only_file_system) {
    return done;
  }
  return options.keeps_device_files ? keep_device_files(root.get()) : Result<void>();
}

// "libcuda.so.550.54.15" gives 550, any other name 0.
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

std::string find_compat_directory(int root, const std::string& driver_version) {
  const auto driver = parse_number<std::uint32_t>(driver_version.substr(0, driver_version.find('.')));
  const Result<kernel::Fd> directory = kernel::open_inside(root, kCompat, O_RDONLY | O_DIRECTORY);
  if (!driver || !directory) {
    return {};
  }
  bool is_newer = false;
  std::size_t count = 0;
  kernel::visit_names(directory->get(), ".", [&](std::string_view name) {
    is_newer = release_of(name) > *driver;
    return !is_newer && ++count < kMostCompatNames;
  });
  return is_newer ? kCompat : "";
}

int serve_hook(const std::vector<std::string>& arguments) {
  // Before anything can fail: otherwise crun says "broken pipe" instead of what failed.
  const Result<std::string> input = kernel::read_input();
  const Result<HookOptions> parsed = nvidia::parse_hook_options(arguments);
  const Result<void> done = parsed ? run_hook(*parsed, input) : Result<void>(std::unexpected(parsed.error()));
  if (!done) {
    (void)std::fprintf(stderr, "holdfast-runtime: hook: %s\n", printable(done.error().message).c_str());
    return parsed ? 1 : 2;
  }
  return 0;
}

}  // namespace hf::shim
