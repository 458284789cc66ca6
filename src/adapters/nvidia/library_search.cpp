#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "adapters/nvidia/file_search.h"
#include "adapters/nvidia/file_table.h"
#include "adapters/nvidia/loader_cache.h"
#include "core/base/text.h"
#include "kernel/file.h"
#include "kernel/tree.h"

namespace hf::nvidia {
namespace {

using kernel::Entry;
using kernel::EntryKind;

constexpr std::string_view kAnchors[] = {"libcuda.so.", "libnvidia-ml.so."};

std::string folder_of(const std::string& path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }

// The word size is the fifth byte of an ELF file: 1 is 32 bits, 2 is 64.
FileKind kind_of_library(int root, const std::string& path) {
  const std::string start = kernel::read_start_in(root, path, 5);
  return start == std::string(
                      "\x7f"
                      "ELF\x01",
                      5)
             ? FileKind::library32
             : FileKind::library;
}

bool is_version(std::string_view text) {
  return text.find('.') != std::string_view::npos && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// The library that shows a folder to be the driver's, by its path without links.
std::optional<std::string> find_anchor(int root, const std::string& folder, const std::string& version) {
  for (const std::string_view anchor : kAnchors) {
    const std::optional<kernel::Found> found =
        kernel::find_in(root, std::string(folder).append("/").append(anchor).append(version));
    if (found && found->kind == EntryKind::file) {
      return found->path;
    }
  }
  return std::nullopt;
}

void put_folder(std::vector<LibraryFolder>& folders, const LibraryFolder& folder) {
  if (std::ranges::find(folders, folder.path, &LibraryFolder::path) == folders.end()) {
    folders.push_back(folder);
  }
}

void add_folder(std::vector<LibraryFolder>& folders, int root, const std::string& candidate,
                const std::string& version) {
  const std::optional<std::string> anchor = find_anchor(root, candidate, version);
  if (!anchor) {
    return;
  }
  const LibraryFolder folder{folder_of(*anchor), kind_of_library(root, *anchor)};
  put_folder(folders, folder);
  // Debian keeps in a folder of their own those that an alternative may replace, and the others above it.
  constexpr std::string_view kAlternative = "/nvidia/current";
  if (folder.path.ends_with(kAlternative)) {
    put_folder(folders, {folder.path.substr(0, folder.path.size() - kAlternative.size()), folder.kind});
  }
}

std::set<std::string> folders_of_loader(int root) {
  std::set<std::string> folders;
  const std::string cache = kernel::read_text(root, "etc/ld.so.cache").value_or("");
  for (const CachedLibrary& library : parse_loader_cache(cache)) {
    if (library.name.starts_with("libcuda.so") || library.name.starts_with("libnvidia-ml.so")) {
      folders.insert(folder_of(std::string(library.path)));
    }
  }
  return folders;
}

std::string version_in(int root, const std::string& folder) {
  const Result<kernel::Fd> opened = kernel::open_folder_in(root, folder);
  if (!opened) {
    return {};
  }
  const auto suffix_of = [](std::string_view name) {
    for (const std::string_view anchor : kAnchors) {
      if (name.starts_with(anchor) && is_version(name.substr(anchor.size()))) {
        return name.substr(anchor.size());
      }
    }
    return std::string_view();
  };
  const std::vector<Entry> found =
      kernel::list_entries(opened->get(), [&](std::string_view name, EntryKind) { return !suffix_of(name).empty(); });
  return found.empty() ? std::string() : std::string(suffix_of(found.back().name));
}

// The libraries of one folder with its links, read once.
class Reader {
 public:
  Reader(DriverFiles& driver, int root, const LibraryFolder& folder) : driver_(driver), root_(root), folder_(folder) {}

  void read() {
    const Result<kernel::Fd> opened = kernel::open_folder_in(root_, folder_.path);
    if (!opened) {
      return;
    }
    const std::vector<Entry> entries =
        kernel::list_entries(opened->get(), [this](std::string_view name, EntryKind kind) {
          return is_driver_library(name, driver_.version) ||
                 (kind == EntryKind::link && name.find(".so") != std::string_view::npos);
        });
    add_files(opened->get(), entries);
    add_links(opened->get(), entries);
    if (std::ranges::any_of(driver_.files,
                            [this](const DriverFile& file) { return folder_of(file.path) == folder_.path; })) {
      driver_.library_folders.push_back(folder_.path);
    }
  }

 private:
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::any_of(
        driver_.files, [&](const DriverFile& file) { return file.kind == folder_.kind && name_in(file.path) == name; });
  }

  // A link in the place of a library leads to it, perhaps in another folder; the name counts once.
  void add_files(int handle, const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      if (!is_driver_library(entry.name, driver_.version) || has(entry.name)) {
        continue;
      }
      std::string path = folder_.path + "/" + entry.name;
      if (entry.kind == EntryKind::link) {
        if (kernel::read_link(handle, entry.name).find('/') == std::string::npos) {
          continue;  // a name for one beside it
        }
        const std::optional<kernel::Found> found = kernel::find_in(root_, path);
        if (!found || found->kind != EntryKind::file || name_in(found->path) != entry.name) {
          continue;
        }
        path = found->path;
      } else if (entry.kind != EntryKind::file) {
        continue;
      }
      driver_.files.push_back({path, folder_.kind, std::string(capability_of_library(entry.name)), ""});
      stems_.insert(std::string(stem_of(entry.name)));
    }
  }

  void add_links(int handle, const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      if (entry.kind == EntryKind::link && stems_.contains(std::string(stem_of(entry.name)))) {
        targets_.emplace(entry.name, kernel::read_link(handle, entry.name));
      }
    }
    for (const auto& [name, target] : targets_) {
      const std::string path = folder_.path + "/" + name;
      const std::string library = end_of(name);
      if (!library.empty() && library != path) {
        const bool is_beside = target.find('/') == std::string::npos;
        driver_.links.push_back({is_beside ? target : library, path, library});
      }
    }
  }

  // The library that a link of this folder leads to, "" where it leads to none of ours.
  [[nodiscard]] std::string end_of(const std::string& link) const {
    constexpr int kMostSteps = 8;
    std::string path = folder_.path + "/" + link;
    std::string name = link;
    for (int step = 0; step < kMostSteps; ++step) {
      const auto target = targets_.find(name);
      if (target == targets_.end()) {
        break;
      }
      if (target->second.find('/') != std::string::npos) {
        const std::optional<kernel::Found> found = kernel::find_in(root_, folder_.path + "/" + name);
        path = found ? found->path : std::string();
        break;
      }
      name = target->second;
      path = folder_.path + "/" + name;
    }
    return std::ranges::find(driver_.files, path, &DriverFile::path) == driver_.files.end() ? std::string() : path;
  }

  DriverFiles& driver_;
  int root_;
  const LibraryFolder& folder_;
  std::set<std::string> stems_;
  std::map<std::string, std::string> targets_;  // the links that bear a library's name
};

}  // namespace

std::vector<LibraryFolder> find_library_folders(int root, const std::string& version) {
  std::vector<LibraryFolder> folders;
  for (const std::string_view folder : library_folders()) {
    add_folder(folders, root, std::string(folder), version);
  }
  const bool has_native = std::ranges::find(folders, FileKind::library, &LibraryFolder::kind) != folders.end();
  for (const std::string& folder : has_native ? std::set<std::string>() : folders_of_loader(root)) {
    add_folder(folders, root, folder, version);
  }
  return folders;
}

std::string find_library_version(int root) {
  for (const std::string_view folder : library_folders()) {
    if (std::string version = version_in(root, std::string(folder)); !version.empty()) {
      return version;
    }
  }
  for (const std::string& folder : folders_of_loader(root)) {
    if (std::string version = version_in(root, folder); !version.empty()) {
      return version;
    }
  }
  return {};
}

void add_libraries(DriverFiles& driver, int root, const LibraryFolder& folder) {
  Reader(driver, root, folder).read();
  const LibraryFolder below{folder.path + "/vdpau", folder.kind};
  Reader(driver, root, below).read();
}

void add_known_links(DriverFiles& driver) {
  std::vector<DriverLink> more;
  for (const KnownLink& known : known_links()) {
    for (const DriverFile& file : driver.files) {
      const bool is_library = file.kind == FileKind::library || file.kind == FileKind::library32;
      if (!is_library || stem_of(name_in(file.path)) != known.library) {
        continue;
      }
      const std::string path = folder_of(file.path) + "/" + std::string(known.name);
      const std::string target(known.target.empty() ? name_in(file.path) : known.target);
      if (std::ranges::find(driver.links, path, &DriverLink::path) == driver.links.end()) {
        more.push_back({target, path, file.path});
      }
    }
  }
  driver.links.insert(driver.links.end(), more.begin(), more.end());
}

}  // namespace hf::nvidia
