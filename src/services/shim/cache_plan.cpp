#include "services/shim/cache_plan.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "adapters/nvidia/file_table.h"
#include "adapters/nvidia/loader_cache.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"
#include "services/shim/hook.h"
#include "services/shim/image_libraries.h"
#include "services/shim/image_paths.h"

namespace hf::shim {
namespace {

using nvidia::CachedLibrary;
using nvidia::HookOptions;

constexpr std::size_t kMostCache = std::size_t(16) << 20U;
constexpr std::size_t kMostLoader = std::size_t(4) << 20U;
constexpr std::size_t kMostLeftOver = 256;  // entries of the cache that may be left from another driver
constexpr const char* kTooManyLookups = "too many paths of the image would have to be looked up";

// Where programs of this architecture expect glibc's loader.
#if defined(__aarch64__)
constexpr std::array kLoaders = {"/lib/ld-linux-aarch64.so.1"};
#else
constexpr std::array kLoaders = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux.so.2"};
#endif

// Fails with no_such_file_or_directory only where there is none.
Result<std::string> read_file_in(int root, const std::string& path, std::size_t most) {
  const kernel::Fd file = TRY(kernel::open_file_in(root, path, kernel::Mounts::of_root));
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) {
    return fail_errno(errno, "read " + path);
  }
  if (std::size_t(status.st_size) > most) {
    return fail(std::errc::file_too_large, "read " + path + ": it is too large");
  }
  std::string text(std::size_t(status.st_size), '\0');
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  return size == ssize_t(text.size()) ? Result<std::string>(std::move(text))
                                      : fail_errno(size < 0 ? errno : EIO, "read " + path);
}

bool is_missing(const Result<std::string>& file) {
  return !file && file.error().code == std::errc::no_such_file_or_directory;
}

// Glibc's loader has the directories that it searches without a cache in its own text, in their order, each with "/" at
// the end. Returns those before this one; absent where it is not among them.
std::optional<std::vector<std::string>> find_searched_before(std::string_view loader, const std::string& directory) {
  constexpr std::size_t kMostDirectories = 16;
  std::vector<std::string> directories;
  std::size_t end = loader.find(std::string(1, '\0').append(directory).append("/").append(1, '\0'));
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  while (directories.size() <= kMostDirectories) {
    const std::string_view before = loader.substr(0, end);
    end = before.rfind('\0');
    const std::string_view text = end == std::string_view::npos ? before : before.substr(end + 1);
    if (!text.starts_with('/') || !text.ends_with('/')) {
      return directories;
    }
    directories.emplace_back(text.substr(0, text.size() - 1));
  }
  return std::nullopt;
}

// Decides about the loader's cache. Nothing of the image is executed.
class CachePlan {
 public:
  CachePlan(const kernel::Host& host, int root, const HookOptions& options, const RootInput& input)
      : host_(host),
        root_(root),
        options_(options),
        paths_(root, input.mounts, input.identities),
        image_(root, paths_) {}

  void make(RootPlan& plan, const RootInput& input) {
    const Reason reason = paths_.has_too_many_lookups() ? std::nullopt : plan_libraries(plan, input);
    if (const std::string problem = paths_.has_too_many_lookups() ? kTooManyLookups : image_.problem();
        !problem.empty()) {
      leave_everything_to_hook(plan, input, problem);
    } else if (reason) {
      leave_to_hook(plan, input, *reason);
    }
  }

 private:
  using Reason = std::optional<std::string>;  // why the hook has to do it; absent where it is decided

  Reason plan_libraries(RootPlan& plan, const RootInput& input) {
    // Runtimes follow symlinks where they mount: such a link would put a file of the user over another one.
    std::erase_if(plan.links, [this](const HookOptions::Link& link) { return paths_.is_mounted(link.path); });
    if (options_.directories.empty()) {
      return std::nullopt;
    }
    driver_ = read_mounted_libraries(host_, input, options_);
    if (!input.is_read_only) {
      add_missing_links(plan);
    }
    add_development_links();
    if (input.is_read_only) {
      do_without_links(plan);
    }
    return decide(plan);
  }

  // Where mounts and symlinks of the image lead is not known, and the hook sees them.
  void leave_everything_to_hook(RootPlan& plan, const RootInput& input, const std::string& reason) const {
    plan.cache.reset();
    plan.links.clear();
    if (!input.is_read_only) {
      plan.rest.links = options_.links;
    }
    leave_to_hook(plan, input, reason);
  }

  void leave_to_hook(RootPlan& plan, const RootInput& input, const std::string& reason) const {
    if (input.is_read_only) {
      plan.notes.push_back(reason);  // the hook could not write either
      return;
    }
    plan.reasons.push_back(reason);
    plan.rest.directories = options_.directories;
    plan.rest.driver_version = options_.driver_version;
  }

  // A symlink of the image that leads to a library is kept. A symlink of an earlier start is not: it leads to the empty
  // file that the runtime left where it mounted an older driver.
  void add_missing_links(RootPlan& plan) {
    for (const Library& library : driver_) {
      const bool is_there = library.name == library.file || paths_.is_mounted(library.path) ||
                            std::ranges::find(plan.links, library.path, &HookOptions::Link::path) != plan.links.end() ||
                            image_.read(library.path).has_value();
      if (!is_there) {
        plan.links.push_back({library.file, library.path});
      }
    }
  }

  // ldconfig lists "libcuda.so" too: programs that load a library by themselves ask for it.
  void add_development_links() {
    std::vector<Library> links;
    for (const HookOptions::Link& link : options_.links) {
      const std::string_view target = base_name(link.target);
      const auto library = std::ranges::find_if(driver_, [&](const Library& one) {
        return directory_of(one.path) == directory_of(link.path) && (one.name == target || one.file == target);
      });
      if (link.path.ends_with(".so") && library != driver_.end()) {
        links.push_back({std::string(base_name(link.path)), link.path, library->file, library->flags});
      }
    }
    std::ranges::move(links, std::back_inserter(driver_));
  }

  // Names in the cache may lead to the files themselves.
  void do_without_links(RootPlan& plan) {
    plan.links.clear();
    for (Library& library : driver_) {
      library.path = directory_of(library.path) + "/" + library.file;
    }
  }

  Reason decide(RootPlan& plan) {
    const std::string cache_path = std::string(kEtc) + "/" + kCacheName;
    if (paths_.is_mounted(paths_.follow(cache_path))) {
      plan.notes.push_back("a volume covers " + cache_path);  // it is its author's matter, also for the hook
      return std::nullopt;
    }
    std::vector<std::string> needed = options_.directories;
    needed.emplace_back(kEtc);
    if (!options_.driver_version.empty()) {
      needed.emplace_back(kCompat);
    }
    if (const std::optional<std::string> covered = paths_.find_covered(needed)) {
      return "a volume covers " + *covered;
    }
    Result<std::vector<Library>> own = read_own_libraries(root_, options_.driver_version, image_);
    if (!own) {
      return own.error().message;
    }
    own_ = *std::move(own);
    const Result<std::string> cache = read_file_in(root_, cache_path, kMostCache);
    return cache ? edit(plan, *cache) : is_missing(cache) ? do_without(plan) : Reason(cache.error().message);
  }

  [[nodiscard]] bool has_loader() const {
    return std::ranges::any_of(kLoaders, [this](const char* loader) {
      return bool(kernel::open_file_in(root_, loader, kernel::Mounts::of_root));
    });
  }

  // Without a cache, and with no library of the same name in an earlier directory.
  bool finds_driver(const std::string& loader) {
    return std::ranges::all_of(options_.directories, [&](const std::string& directory) {
      const auto earlier = find_searched_before(loader, directory);
      return earlier && std::ranges::none_of(*earlier, [&](const std::string& other) {
               return paths_.resolve(other) != paths_.resolve(directory) && has_drivers_names(other);
             });
    });
  }

  bool has_drivers_names(const std::string& directory) {
    return std::ranges::any_of(driver_, [&](const Library& library) {
      return !paths_.resolve(std::string(directory).append("/").append(library.name)).empty();
    });
  }

  // musl and static programs use no cache. Glibc needs none where it finds the driver anyway, and the image has no
  // newer libraries. Otherwise a cache with these libraries alone is enough, unless the image has more directories in
  // mind.
  Reason do_without(RootPlan& plan) {
    for (const char* loader : kLoaders) {
      const Result<std::string> text = read_file_in(root_, loader, kMostLoader);
      if (is_missing(text)) {
        continue;
      }
      if (!text) {
        return text.error().message;
      }
      const bool is_enough = own_.empty() && finds_driver(*text);
      if (!is_enough && kernel::find_in(root_, std::string(kEtc) + "/ld.so.conf")) {
        return "the image has no loader's cache but an ld.so.conf";
      }
      if (!is_enough) {
        return edit(plan, nvidia::render_loader_cache({}));
      }
    }
    return std::nullopt;
  }

  Reason edit(RootPlan& plan, const std::string& text) {
    if (!has_loader()) {
      return "the image has a loader's cache, but no loader of this architecture";
    }
    Result<nvidia::LoaderCache> cache = nvidia::parse_loader_cache(text);
    if (!cache || !is_ordered(*cache)) {
      return cache ? "the image's loader's cache has names out of order, or that the loader cannot compare"
                   : cache.error().message;
    }
    if (const Reason reason = remove_left_over(*cache)) {
      return reason;
    }
    put_first(*cache);
    std::string edited = render_loader_cache(*cache);
    const Result<nvidia::LoaderCache> again = nvidia::parse_loader_cache(edited);
    if (!again || !is_ordered(*again)) {
      return "with the image's own libraries: " +
             (again ? "the cache has names that the loader cannot compare" : again.error().message);
    }
    plan.cache = edited == text ? std::nullopt : std::optional(std::move(edited));
    return std::nullopt;
  }

  // Of what an earlier start added, with another driver or with newer CUDA libraries, only empty files and symlinks to
  // them may be left. ldconfig would not list those either. CUDA libraries that are not newer any more are there, and
  // only ldconfig knows whether the image itself lists them.
  Reason remove_left_over(nvidia::LoaderCache& cache) {
    std::vector<CachedLibrary*> found;
    for (CachedLibrary& library : cache.libraries) {
      if (may_be_left_over(library, directory_of(std::string(library.path)))) {
        found.push_back(&library);
      }
    }
    if (found.size() > kMostLeftOver) {
      return "the image's loader's cache has too many libraries that may be left from another driver";
    }
    for (CachedLibrary* const library : found) {
      const std::string path(library->path);
      if (!paths_.is_mounted(paths_.follow(path)) && !image_.read(path)) {
        library->path = {};
      } else if (directory_of(path) == kCompat && own_.empty() && !options_.driver_version.empty()) {
        return "the image's loader's cache lists CUDA libraries that are not newer than the driver's";
      }
    }
    std::erase_if(cache.libraries, [](const CachedLibrary& library) { return library.path.empty(); });
    return std::nullopt;
  }

  // The loader prefers libraries for certain processors, in glibc-hwcaps directories, also to those that are put first.
  [[nodiscard]] bool may_be_left_over(const CachedLibrary& library, const std::string& directory) const {
    if (directory == kCompat) {
      return true;
    }
    if (std::ranges::find(driver_, library.name, &Library::name) != driver_.end()) {
      return library.hardware != 0;
    }
    return !nvidia::capability_of_library(library.name).empty() &&
           std::ranges::find(options_.directories, directory) != options_.directories.end();
  }

  void put_first(nvidia::LoaderCache& cache) {
    std::vector<CachedLibrary> libraries;
    for (const std::vector<Library>* part : {&own_, &driver_}) {
      std::ranges::transform(*part, std::back_inserter(libraries), [](const Library& library) {
        return CachedLibrary{library.name, library.path, library.flags};
      });
    }
    nvidia::put_first(cache, libraries, [this](std::string_view path) {
      return !paths_.has_too_many_lookups() && is_gone(std::string(path));
    });
  }

  // Libraries of the same names as the driver's: is it the same directory under another name, or no file any more?
  bool is_gone(const std::string& path) {
    const std::string& directory = paths_.resolve(directory_of(path));
    const auto is_same = [&](const std::string& ours) { return paths_.resolve(ours) == directory; };
    return directory.empty() || std::ranges::any_of(options_.directories, is_same) ||
           (!own_.empty() && is_same(kCompat)) || paths_.resolve(path).empty();
  }

  const kernel::Host& host_;
  int root_;
  const HookOptions& options_;
  ImagePaths paths_;
  ImageLibraries image_;
  std::vector<Library> driver_;
  std::vector<Library> own_;
};

}  // namespace

void plan_cache(const kernel::Host& host, int root, const HookOptions& options, const RootInput& input,
                RootPlan& plan) {
  CachePlan(host, root, options, input).make(plan, input);
}

}  // namespace hf::shim
