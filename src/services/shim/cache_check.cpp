#include "services/shim/cache_check.h"

#include <algorithm>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/nvidia/file_table.h"
#include "adapters/nvidia/loader_cache.h"
#include "kernel/inside.h"
#include "kernel/tree.h"

namespace hf::shim {
namespace {

struct Cache {
  std::string bytes;  // empty where there is none that can be read
  timespec changed{};
};

// The image may have anything in its place: a link, a pipe, or more than there is memory.
Cache read_cache(int root) {
  const Result<kernel::Fd> file = kernel::open_inside(root, "/etc/ld.so.cache", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  constexpr off_t kMost = off_t(8) << 20U;
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > kMost) {
    return {};
  }
  Cache cache{std::string(std::size_t(status.st_size), '\0'), status.st_mtim};
  const ssize_t size = ::pread(file->get(), cache.bytes.data(), cache.bytes.size(), 0);
  cache.bytes.resize(size > 0 ? std::size_t(size) : 0);
  return cache;
}

bool is_later(const timespec& time, const timespec& other) {
  return time.tv_sec != other.tv_sec ? time.tv_sec > other.tv_sec : time.tv_nsec > other.tv_nsec;
}

bool has_changed_since(int root, const std::string& path, const timespec& time) {
  const Result<kernel::Fd> file = kernel::open_inside(root, path, O_PATH);
  struct stat status{};
  return file && (::fstat(file->get(), &status) < 0 || is_later(status.st_mtim, time));
}

class Check {
 public:
  Check(int root, const HookWords& words, const Cache& cache) : root_(root), words_(words) {
    for (const nvidia::CachedLibrary& library : nvidia::parse_loader_cache(cache.bytes)) {
      paths_.insert(library.path);
    }
  }

  [[nodiscard]] bool knows_libraries_of(const std::string& folder) const {
    const Result<kernel::Fd> opened = kernel::open_inside(root_, folder, O_RDONLY | O_DIRECTORY);
    if (!opened) {
      return true;  // nothing of it would be in the cache
    }
    const std::vector<kernel::Entry> libraries =
        kernel::list_entries(opened->get(), [this](std::string_view name, kernel::EntryKind kind) {
          return kind == kernel::EntryKind::file && nvidia::is_driver_library(name, words_.driver_version);
        });
    return std::ranges::all_of(libraries,
                               [this, &folder](const kernel::Entry& library) { return knows(folder, library.name); });
  }

 private:
  [[nodiscard]] bool knows(const std::string& folder, const std::string& library) const {
    return paths_.contains(folder + "/" + library) ||
           std::ranges::any_of(words_.links, [&](const HookWords::Link& link) {
             return link.target == library && link.path.starts_with(folder + "/") && paths_.contains(link.path);
           });
  }

  int root_;
  const HookWords& words_;
  std::set<std::string_view> paths_;  // of the cache's bytes
};

}  // namespace

bool is_cache_current(int root, const HookWords& words) {
  const Cache cache = read_cache(root);
  const auto has_changed = [&](const std::string& path) { return has_changed_since(root, path, cache.changed); };
  if (cache.bytes.empty() || words.driver_version.empty() || std::ranges::any_of(words.folders, has_changed) ||
      has_changed("/etc/ld.so.conf") || has_changed("/etc/ld.so.conf.d")) {
    return false;
  }
  const Check check(root, words, cache);
  return std::ranges::all_of(words.folders,
                             [&check](const std::string& folder) { return check.knows_libraries_of(folder); });
}

}  // namespace hf::shim
