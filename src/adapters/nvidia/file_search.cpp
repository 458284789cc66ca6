#include "adapters/nvidia/file_search.h"

#include <algorithm>
#include <array>
#include <optional>

#include "adapters/nvidia/file_table.h"
#include "core/base/text.h"
#include "kernel/file.h"
#include "kernel/tree.h"

namespace hf::nvidia {
namespace {

using kernel::Entry;
using kernel::EntryKind;
using kernel::Found;

bool is_script(int root, const std::string& path) { return kernel::read_start_in(root, path, 2) == "#!"; }

// Most of the usual folders are links to one of the others.
std::vector<std::string> find_binary_folders(int root) {
  std::vector<std::string> folders;
  for (const std::string_view folder : binary_folders()) {
    std::optional<Found> found = kernel::find_in(root, std::string(folder));
    if (found && std::ranges::find(folders, found->path) == folders.end()) {
      folders.push_back(std::move(found->path));
    }
  }
  return folders;
}

// A wrapper in a shell's words calls the program by a path that a container does not have.
std::string find_binary(int root, const std::vector<std::string>& folders, std::string_view name) {
  std::string script;
  for (const std::string& folder : folders) {
    const std::optional<Found> found = kernel::find_in(root, std::string(folder).append("/").append(name));
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

// Where the kernel looks for firmware, in its order.
std::vector<std::string> firmware_folders(int root) {
  const auto word_in = [root](const char* file) {
    return std::string(trim(kernel::read_text(root, file).value_or("")));
  };
  const std::string release = word_in("proc/sys/kernel/osrelease");
  std::vector<std::string> folders = {word_in("sys/module/firmware_class/parameters/path")};
  if (!release.empty()) {
    folders.insert(folders.end(), {"/lib/firmware/updates/" + release, "/lib/firmware/" + release});
  }
  folders.insert(folders.end(), {"/lib/firmware/updates", "/lib/firmware", "/usr/local/nvidia/firmware"});
  return folders;
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
  const std::vector<std::string> folders = find_binary_folders(root);
  for (const KnownFile& known : binaries()) {
    const std::string path = find_binary(root, folders, known.name);
    const std::string inside = "/usr/bin/" + std::string(known.name);  // a folder that every shell looks into
    if (!path.empty()) {
      driver.files.push_back({path, FileKind::binary, std::string(known.capability), path == inside ? "" : inside});
    }
  }
}

void add_firmware(DriverFiles& driver, int root) {
  for (const std::string& folder : firmware_folders(root)) {
    const std::string path = folder + "/nvidia/" + driver.version;
    const Result<kernel::Fd> opened = kernel::open_folder_in(root, path);
    const std::optional<Found> real = opened && !folder.empty() ? kernel::find_in(root, path) : std::nullopt;
    if (!real) {
      continue;
    }
    for (const Entry& entry : kernel::list_entries(opened->get(), [](std::string_view name, EntryKind kind) {
           return kind == EntryKind::file && name.starts_with("gsp") && name.ends_with(".bin");
         })) {
      const std::string file = real->path + "/" + entry.name;
      const std::string inside = path + "/" + entry.name;
      driver.files.push_back({file, FileKind::firmware, "", file == inside ? "" : inside});
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
  // Anybody may make a folder in /tmp, or a link: only root's own is passed on.
  const std::string pipes = "/tmp/nvidia-mps";
  const std::optional<Found> found = kernel::find_in(root, pipes);
  if (found && found->kind == EntryKind::folder && found->path == pipes && found->uid == 0) {
    driver.files.push_back({pipes, FileKind::socket, "compute", ""});
  }
}

void add_configs(DriverFiles& driver, int root) {
  for (const KnownFile& known : config_files()) {
    for (const std::string_view folder : config_folders()) {
      const std::size_t before = driver.files.size();
      add_if_found(driver, root, std::string(folder).append("/").append(known.name), known);
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
  for (const std::string_view folder : display_folders()) {
    const std::string prefix = std::string(folder) + "/";
    for (const std::string& name : {std::string("nvidia_drv.so"), server_module}) {
      const std::optional<Found> found = kernel::find_in(root, prefix + name);
      const bool is_known = found && std::ranges::any_of(driver.files, [&](const DriverFile& file) {
                              return name_in(file.path) == name;
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
