#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "adapters/nvidia/file_search.h"
#include "adapters/nvidia/file_table.h"
#include "adapters/nvidia/loader_cache.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"

namespace hf::nvidia {
namespace {

using kernel::Entry;
using kernel::EntryKind;

constexpr std::string_view kAnchors[] = {"libcuda.so.", "libnvidia-ml.so."};

std::string directory_or_root(const std::string& path) {
  const std::string directory = directory_of(path);
  return directory.empty() ? "/" : directory;
}

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

// The library that identifies a directory as the driver's, by its path with symlinks resolved.
std::optional<std::string> find_anchor(int root, const std::string& directory, const std::string& version) {
  for (const std::string_view anchor : kAnchors) {
    const std::optional<kernel::Found> found =
        kernel::find_in(root, std::string(directory).append("/").append(anchor).append(version));
    if (found && found->kind == EntryKind::file) {
      return found->path;
    }
  }
  return std::nullopt;
}

void append_if_new(std::vector<LibraryDirectory>& directories, const LibraryDirectory& directory) {
  if (std::ranges::find(directories, directory.path, &LibraryDirectory::path) == directories.end()) {
    directories.push_back(directory);
  }
}

void add_directory(std::vector<LibraryDirectory>& directories, int root, const std::string& candidate,
                   const std::string& version) {
  const std::optional<std::string> anchor = find_anchor(root, candidate, version);
  if (!anchor) {
    return;
  }
  const LibraryDirectory directory{directory_or_root(*anchor), kind_of_library(root, *anchor)};
  append_if_new(directories, directory);
  // Debian has the libraries that an alternative may replace in a subdirectory, and the others in the directory above.
  constexpr std::string_view kAlternative = "/nvidia/current";
  if (directory.path.ends_with(kAlternative)) {
    append_if_new(directories, {directory.path.substr(0, directory.path.size() - kAlternative.size()), directory.kind});
  }
}

std::set<std::string> directories_of_loader(int root) {
  std::set<std::string> directories;
  const std::string cache = kernel::read_text(root, "etc/ld.so.cache").value_or("");
  for (const CachedLibrary& library : parse_loader_cache(cache).value_or(LoaderCache()).libraries) {
    if (library.name.starts_with("libcuda.so") || library.name.starts_with("libnvidia-ml.so")) {
      directories.insert(directory_or_root(std::string(library.path)));
    }
  }
  return directories;
}

std::string version_in(int root, const std::string& directory) {
  const Result<kernel::Fd> opened = kernel::open_directory_in(root, directory);
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

// Reads the libraries of one directory and the symlinks to them.
class DirectoryReader {
 public:
  DirectoryReader(DriverFiles& driver, int root, const LibraryDirectory& directory)
      : driver_(driver), root_(root), directory_(directory) {}

  void read() {
    const Result<kernel::Fd> opened = kernel::open_directory_in(root_, directory_.path);
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
    if (std::ranges::any_of(driver_.files, [this](const DriverFile& file) {
          return directory_or_root(file.path) == directory_.path;
        })) {
      driver_.library_directories.push_back(directory_.path);
    }
  }

 private:
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::any_of(driver_.files, [&](const DriverFile& file) {
      return file.kind == directory_.kind && base_name(file.path) == name;
    });
  }

  // A symlink that has a library's name may point to it in another directory; each name is added once.
  void add_files(int handle, const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      if (!is_driver_library(entry.name, driver_.version) || has(entry.name)) {
        continue;
      }
      std::string path = directory_.path + "/" + entry.name;
      if (entry.kind == EntryKind::link) {
        if (kernel::read_link(handle, entry.name).find('/') == std::string::npos) {
          continue;  // an alias of a library in the same directory
        }
        const std::optional<kernel::Found> found = kernel::find_in(root_, path);
        if (!found || found->kind != EntryKind::file || base_name(found->path) != entry.name) {
          continue;
        }
        path = found->path;
      } else if (entry.kind != EntryKind::file) {
        continue;
      }
      driver_.files.push_back({path, directory_.kind, std::string(capability_of_library(entry.name)), ""});
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
      const std::string path = directory_.path + "/" + name;
      const std::string library = resolve_link(name);
      if (!library.empty() && library != path) {
        const bool is_beside = target.find('/') == std::string::npos;
        driver_.links.push_back({is_beside ? target : library, path, library});
      }
    }
  }

  // The library that a symlink of this directory resolves to, "" where that is not one of the driver's.
  [[nodiscard]] std::string resolve_link(const std::string& link) const {
    constexpr int kMostSteps = 8;
    std::string path = directory_.path + "/" + link;
    std::string name = link;
    for (int step = 0; step < kMostSteps; ++step) {
      const auto target = targets_.find(name);
      if (target == targets_.end()) {
        break;
      }
      if (target->second.find('/') != std::string::npos) {
        const std::optional<kernel::Found> found = kernel::find_in(root_, directory_.path + "/" + name);
        path = found ? found->path : std::string();
        break;
      }
      name = target->second;
      path = directory_.path + "/" + name;
    }
    return std::ranges::find(driver_.files, path, &DriverFile::path) == driver_.files.end() ? std::string() : path;
  }

  DriverFiles& driver_;
  int root_;
  const LibraryDirectory& directory_;
  std::set<std::string> stems_;
  std::map<std::string, std::string> targets_;  // of the symlinks that are named after a library
};

}  // namespace

std::vector<LibraryDirectory> find_library_directories(int root, const std::string& version) {
  std::vector<LibraryDirectory> directories;
  for (const std::string_view directory : library_directories()) {
    add_directory(directories, root, std::string(directory), version);
  }
  const bool has_native =
      std::ranges::find(directories, FileKind::library, &LibraryDirectory::kind) != directories.end();
  for (const std::string& directory : has_native ? std::set<std::string>() : directories_of_loader(root)) {
    add_directory(directories, root, directory, version);
  }
  return directories;
}

std::string find_library_version(int root) {
  for (const std::string_view directory : library_directories()) {
    if (std::string version = version_in(root, std::string(directory)); !version.empty()) {
      return version;
    }
  }
  for (const std::string& directory : directories_of_loader(root)) {
    if (std::string version = version_in(root, directory); !version.empty()) {
      return version;
    }
  }
  return {};
}

void add_libraries(DriverFiles& driver, int root, const LibraryDirectory& directory) {
  DirectoryReader(driver, root, directory).read();
  const LibraryDirectory below{directory.path + "/vdpau", directory.kind};
  DirectoryReader(driver, root, below).read();
}

void add_known_links(DriverFiles& driver) {
  std::vector<DriverLink> more;
  for (const KnownLink& known : known_links()) {
    for (const DriverFile& file : driver.files) {
      const bool is_library = file.kind == FileKind::library || file.kind == FileKind::library32;
      if (!is_library || stem_of(base_name(file.path)) != known.library) {
        continue;
      }
      const std::string path = directory_or_root(file.path) + "/" + std::string(known.name);
      const std::string target(known.target.empty() ? base_name(file.path) : known.target);
      if (std::ranges::find(driver.links, path, &DriverLink::path) == driver.links.end()) {
        more.push_back({target, path, file.path});
      }
    }
  }
  driver.links.insert(driver.links.end(), more.begin(), more.end());
}

}  // namespace hf::nvidia
