#include "adapters/nvidia/file_search.h"

#include <algorithm>
#include <array>
#include <optional>

#include "adapters/nvidia/file_table.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"

namespace hf::nvidia {
namespace {

using kernel::Entry;
using kernel::EntryKind;
using kernel::Found;

bool is_script(int root, const std::string& path) { return kernel::read_start_in(root, path, 2) == "#!"; }

// Most of these directories are symlinks to one of the others, so duplicates are dropped.
std::vector<std::string> find_binary_directories(int root) {
  std::vector<std::string> directories;
  for (const std::string_view directory : binary_directories()) {
    std::optional<Found> found = kernel::find_in(root, std::string(directory));
    if (found && std::ranges::find(directories, found->path) == directories.end()) {
      directories.push_back(std::move(found->path));
    }
  }
  return directories;
}

// A program is preferred to a shell script: a wrapper calls the program by a path that a container does not have.
std::string find_binary(int root, const std::vector<std::string>& directories, std::string_view name) {
  std::string script;
  for (const std::string& directory : directories) {
    const std::optional<Found> found = kernel::find_in(root, std::string(directory).append("/").append(name));
    if (!found || found->kind != EntryKind::file) {
      continue;
    }
    if (!is_script(root, found->path)) {
      return found->path;
    }
    script = script.empty() ? found->path : script;
  }
  return script;
}

// The directories that the kernel searches for firmware, in its order.
std::vector<std::string> firmware_directories(int root) {
  const auto read_trimmed = [root](const char* file) {
    return std::string(trim(kernel::read_text(root, file).value_or("")));
  };
  const std::string release = read_trimmed("proc/sys/kernel/osrelease");
  std::vector<std::string> directories = {read_trimmed("sys/module/firmware_class/parameters/path")};
  if (!release.empty()) {
    directories.insert(directories.end(), {"/lib/firmware/updates/" + release, "/lib/firmware/" + release});
  }
  directories.insert(directories.end(), {"/lib/firmware/updates", "/lib/firmware", "/usr/local/nvidia/firmware"});
  return directories;
}

void add_if_found(DriverFiles& driver, int root, const std::string& path, const KnownFile& known) {
  const std::optional<Found> found = kernel::find_in(root, path);
  if (found && found->kind == EntryKind::file) {
    driver.files.push_back(
        {found->path, FileKind::config, std::string(known.capability), path == found->path ? "" : path});
  }
}

}  // namespace

void add_binaries(DriverFiles& driver, int root) {
  const std::vector<std::string> directories = find_binary_directories(root);
  for (const KnownFile& known : binaries()) {
    const std::string path = find_binary(root, directories, known.name);
    const std::string container_path = "/usr/bin/" + std::string(known.name);  // a directory that is in every PATH
    if (!path.empty()) {
      driver.files.push_back(
          {path, FileKind::binary, std::string(known.capability), path == container_path ? "" : container_path});
    }
  }
}

void add_firmware(DriverFiles& driver, int root) {
  for (const std::string& directory : firmware_directories(root)) {
    const std::string path = directory + "/nvidia/" + driver.version;
    const Result<kernel::Fd> opened = kernel::open_directory_in(root, path);
    const std::optional<Found> real = opened && !directory.empty() ? kernel::find_in(root, path) : std::nullopt;
    if (!real) {
      continue;
    }
    for (const Entry& entry : kernel::list_entries(opened->get(), [](std::string_view name, EntryKind kind) {
           return kind == EntryKind::file && name.starts_with("gsp") && name.ends_with(".bin");
         })) {
      const std::string file = real->path + "/" + entry.name;
      const std::string container_path = path + "/" + entry.name;
      driver.files.push_back({file, FileKind::firmware, "", file == container_path ? "" : container_path});
    }
    return;
  }
}

void add_sockets(DriverFiles& driver, int root) {
  constexpr std::array<KnownFile, 2> kSockets = {
      {{"/run/nvidia-persistenced/socket", "utility"}, {"/run/nvidia-fabricmanager/socket", "compute"}}};
  for (const KnownFile& known : kSockets) {
    for (const std::string& path : {std::string(known.name), "/var" + std::string(known.name)}) {
      const std::optional<Found> found = kernel::find_in(root, path);
      if (found && found->kind == EntryKind::socket) {
        driver.files.push_back({found->path, FileKind::socket, std::string(known.capability), ""});
        break;
      }
    }
  }
  // Every user may create a directory or a symlink in /tmp: only a directory that root owns is passed on.
  const std::string pipes = "/tmp/nvidia-mps";
  const std::optional<Found> found = kernel::find_in(root, pipes);
  if (found && found->kind == EntryKind::directory && found->path == pipes && found->uid == 0) {
    driver.files.push_back({pipes, FileKind::socket, "compute", ""});
  }
}

void add_configs(DriverFiles& driver, int root) {
  for (const KnownFile& known : config_files()) {
    for (const std::string_view directory : config_directories()) {
      const std::size_t before = driver.files.size();
      add_if_found(driver, root, std::string(directory).append("/").append(known.name), known);
      if (driver.files.size() > before) {
        break;
      }
    }
  }
  const std::string profiles = "/usr/share/nvidia/nvidia-application-profiles-" + driver.version + "-rc";
  add_if_found(driver, root, profiles, {"", "graphics"});
}

void add_display_modules(DriverFiles& driver, int root) {
  const std::string server_module = "libglxserver_nvidia.so." + driver.version;
  for (const std::string_view directory : display_directories()) {
    const std::string prefix = std::string(directory) + "/";
    for (const std::string& name : {std::string("nvidia_drv.so"), server_module}) {
      const std::optional<Found> found = kernel::find_in(root, prefix + name);
      const bool is_known = found && std::ranges::any_of(driver.files, [&](const DriverFile& file) {
                              return base_name(file.path) == name;
                            });
      if (!found || found->kind != EntryKind::file || is_known) {
        continue;
      }
      driver.files.push_back({found->path, FileKind::other, "display", ""});
      if (name == server_module) {
        const std::string beside = found->path.substr(0, found->path.rfind('/')) + "/libglxserver_nvidia.so";
        driver.links.push_back({server_module, beside, found->path});
      }
    }
  }
}

}  // namespace hf::nvidia
