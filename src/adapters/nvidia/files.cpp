#include "adapters/nvidia/files.h"

#include <algorithm>

#include "adapters/nvidia/driver.h"
#include "adapters/nvidia/file_search.h"
#include "adapters/nvidia/hook_options.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"

namespace hf::nvidia {
namespace {

const std::vector<std::string> kReadOnly = {"ro", "nosuid", "nodev", "rbind", "rprivate"};
const std::vector<std::string> kSocket = {"nosuid", "nodev", "rbind", "rprivate", "noexec"};

// "display" needs the graphics libraries as well.
bool needs(const DriverCapabilities& capabilities, const DriverFile& file) {
  const bool has_capability = file.capability.empty() || capabilities.has(file.capability) ||
                              (file.capability == "graphics" && capabilities.has("display"));
  return has_capability && (file.kind != FileKind::library32 || capabilities.has("compat32"));
}

bool is_library(const DriverFile& file) { return file.kind == FileKind::library || file.kind == FileKind::library32; }

std::vector<std::string> cuda_directories(const std::vector<DriverFile>& selected) {
  std::vector<std::string> directories;
  for (const DriverFile& file : selected) {
    const std::string directory = directory_of(file.path_in_container());
    if (is_library(file) && base_name(file.path).starts_with("libcuda.so.") &&
        std::ranges::find(directories, directory) == directories.end()) {
      directories.push_back(directory);
    }
  }
  return directories;
}

HookOptions options_for(const DriverFiles& driver, const std::vector<DriverFile>& selected,
                        const DriverCapabilities& capabilities) {
  HookOptions options;
  for (const std::string& directory : driver.library_directories) {
    const bool is_used = std::ranges::any_of(
        selected, [&](const DriverFile& file) { return is_library(file) && directory_of(file.path) == directory; });
    if (is_used) {
      options.directories.push_back(directory);
    }
  }
  for (const DriverLink& link : driver.links) {
    if (std::ranges::find(selected, link.library, &DriverFile::path) != selected.end()) {
      options.links.push_back({link.target, link.path});
    }
  }
  options.driver_version = driver.version;
  options.keeps_device_files = true;
  options.limits_graphics = capabilities.has("graphics") || capabilities.has("display");
  return options;
}

}  // namespace

Result<DriverFiles> read_driver_files(const kernel::Host& host, const std::string& driver_root) {
  DriverFiles driver;
  driver.root = driver_root == "/" ? "" : driver_root;
  const kernel::Fd opened = TRY(kernel::open_directory_in(host.root.get(), driver.root.empty() ? "/" : driver.root));
  const int root = opened.get();
  driver.version = parse_driver_version(kernel::read_text(host.root.get(), "proc/driver/nvidia/version").value_or(""));
  if (driver.version.empty()) {
    driver.version = find_library_version(root);
  }
  if (driver.version.empty()) {
    return fail(Reason::unavailable, "find NVIDIA's driver: neither its kernel module nor its libraries are here");
  }
  for (const LibraryDirectory& directory : find_library_directories(root, driver.version)) {
    add_libraries(driver, root, directory);
  }
  if (driver.files.empty()) {
    const std::string other = find_library_version(root);
    const std::string instead = other.empty() ? "" : "; those of " + other + " are here, of another version";
    return fail(std::errc::no_such_file_or_directory,
                "find libcuda.so." + driver.version + " or libnvidia-ml.so." + driver.version +
                    ": the kernel's module has this version, and no library of it is here" + instead);
  }
  add_known_links(driver);
  add_binaries(driver, root);
  add_firmware(driver, root);
  add_sockets(driver, root);
  add_configs(driver, root);
  add_display_modules(driver, root);
  return driver;
}

container::ContainerEdits edits_of(const DriverFiles& driver, const DriverCapabilities& capabilities,
                                   const HookSettings& hook) {
  std::vector<DriverFile> selected;
  std::ranges::copy_if(driver.files, std::back_inserter(selected),
                       [&](const DriverFile& file) { return needs(capabilities, file); });
  container::ContainerEdits edits;
  edits.environment = {"NVIDIA_VISIBLE_DEVICES=void"};  // or NVIDIA's own runtime would edit the container as well
  if (const std::string directories = join(cuda_directories(selected), ":"); !directories.empty()) {
    // NVIDIA's toolkit sets it too: for programs with a loader of their own, which reads no cache.
    edits.environment.push_back("NVIDIA_CTK_LIBCUDA_DIR=" + directories);
  }
  for (const DriverFile& file : selected) {
    const bool is_socket = file.kind == FileKind::socket;
    edits.mounts.push_back({driver.root + file.path, file.path_in_container(), "", is_socket ? kSocket : kReadOnly});
  }
  if (!hook.path.empty()) {
    edits.hooks.push_back(hook_of(options_for(driver, selected, capabilities), hook.path));
  }
  return edits;
}

}  // namespace hf::nvidia
