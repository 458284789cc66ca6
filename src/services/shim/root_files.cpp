#include "services/shim/root_files.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/nvidia/graphics_profile.h"
#include "adapters/nvidia/library_identity.h"
#include "adapters/nvidia/loader_cache.h"
#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"
#include "services/shim/hook.h"

namespace hf::shim {
namespace {

using container::HookEdit;
using container::MountEdit;
using nvidia::CachedLibrary;
using nvidia::HookOptions;

constexpr const char* kEtc = "/etc";
constexpr const char* kCacheName = "ld.so.cache";
constexpr std::size_t kMostCache = std::size_t(16) << 20U;
constexpr std::size_t kMostLoader = std::size_t(4) << 20U;
constexpr std::size_t kMostOwnLibraries = 256;  // in the image's directory of newer CUDA libraries

// Where programs of this architecture expect glibc's loader.
#if defined(__aarch64__)
constexpr std::array kLoaders = {"/lib/ld-linux-aarch64.so.1"};
#else
constexpr std::array kLoaders = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux.so.2"};
#endif

std::string directory_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

// A library under the name that programs ask for.
struct Library {
  std::string name;
  std::string path;
  std::string file;  // the name of the file in the same directory
  std::uint32_t flags = 0;
};

bool is_library_name(std::string_view name) {
  return name.starts_with("lib") && name.find(".so") != std::string_view::npos;
}

std::optional<nvidia::LibraryIdentity> read_identity(int root, const std::string& path) {
  const Result<kernel::Fd> file = kernel::open_file_in(root, path);
  return file ? nvidia::read_library_identity(*file) : std::nullopt;
}

Library library_at(const std::string& path, const nvidia::LibraryIdentity& identity) {
  const std::string file(base_name(path));
  const std::string& name = identity.name.empty() ? file : identity.name;
  return {name, directory_of(path) + "/" + name, file, identity.flags};
}

std::vector<Library> read_mounted_libraries(const kernel::Host& host, const RootInput& input,
                                            const std::vector<std::string>& directories) {
  std::vector<Library> libraries;
  for (const MountEdit& mount : input.mounts) {
    if (!is_library_name(base_name(mount.destination)) ||
        std::ranges::find(directories, directory_of(mount.destination)) == directories.end()) {
      continue;
    }
    const auto known = input.identities.find(mount.source);
    const std::optional<nvidia::LibraryIdentity> identity =
        known != input.identities.end() ? known->second : read_identity(host.root.get(), mount.source);
    if (identity) {
      libraries.push_back(library_at(mount.destination, *identity));
    }
  }
  return libraries;
}

// The image's own CUDA libraries, where they are newer than the driver's.
std::vector<Library> read_own_libraries(int root, const std::string& driver_version) {
  std::vector<Library> libraries;
  const std::string directory = find_compat_directory(root, driver_version);
  const Result<kernel::Fd> opened = kernel::open_directory_in(root, directory);
  if (directory.empty() || !opened) {
    return libraries;
  }
  const std::vector<std::string> names = kernel::list_names(opened->get(), ".");
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    const std::optional<nvidia::LibraryIdentity> identity =
        is_library_name(name) ? read_identity(root, path) : std::nullopt;
    const std::optional<Library> library = identity ? std::optional(library_at(path, *identity)) : std::nullopt;
    const bool is_known = library && std::ranges::find(libraries, library->name, &Library::name) != libraries.end();
    if (library && !is_known && libraries.size() < kMostOwnLibraries &&
        std::ranges::binary_search(names, library->name)) {
      libraries.push_back(*library);
    }
  }
  return libraries;
}

std::optional<std::string> read_file_in(int root, const std::string& path, std::size_t most) {
  const Result<kernel::Fd> file = kernel::open_file_in(root, path);
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) < 0 || std::size_t(status.st_size) > most) {
    return std::nullopt;
  }
  std::string text(std::size_t(status.st_size), '\0');
  const ssize_t size = ::pread(file->get(), text.data(), text.size(), 0);
  return size == ssize_t(text.size()) ? std::optional(std::move(text)) : std::nullopt;
}

// Glibc's loader has the directories that it searches without a cache in its own text, each with "/" at the end.
bool searches(const std::string& loader, const std::string& directory) {
  return loader.find(directory + "/" + '\0') != std::string::npos;
}

// Decides about the loader's cache. Nothing of the image is executed.
class CachePlan {
 public:
  CachePlan(const kernel::Host& host, int root, const HookOptions& options)
      : host_(host), root_(root), options_(options) {}

  void make(RootPlan& plan, const RootInput& input) {
    driver_ = read_mounted_libraries(host_, input, options_.directories);
    if (options_.directories.empty()) {
      return;
    }
    add_missing_links(plan);
    add_development_links();
    const std::optional<std::string> cache = read_file_in(root_, std::string(kEtc) + "/" + kCacheName, kMostCache);
    const std::optional<std::string> reason = cache ? edit(plan, *cache) : do_without(plan);
    if (reason) {
      plan.reasons.push_back(*reason);
      plan.rest.directories = options_.directories;
      plan.rest.driver_version = options_.driver_version;
    }
  }

 private:
  using Reason = std::optional<std::string>;  // why the hook has to do it; absent where it is decided

  void add_missing_links(RootPlan& plan) const {
    for (const Library& library : driver_) {
      const bool is_there = library.name == library.file ||
                            std::ranges::find(plan.links, library.path, &HookOptions::Link::path) != plan.links.end();
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

  [[nodiscard]] bool has_loader() const {
    return std::ranges::any_of(kLoaders,
                               [this](const char* loader) { return bool(kernel::open_file_in(root_, loader)); });
  }

  // musl and static programs use no cache. Glibc needs none where it searches the directories anyway. Otherwise a cache
  // with the driver's libraries alone is enough, unless the image has more directories in mind.
  Reason do_without(RootPlan& plan) const {
    for (const char* loader : kLoaders) {
      const std::optional<std::string> text = read_file_in(root_, loader, kMostLoader);
      const bool is_enough = !text || std::ranges::all_of(options_.directories, [&text](const std::string& directory) {
        return searches(*text, directory);
      });
      if (!is_enough && kernel::find_in(root_, std::string(kEtc) + "/ld.so.conf")) {
        return "the image has no loader's cache but an ld.so.conf";
      }
      if (!is_enough) {
        return edit(plan, nvidia::render_loader_cache({}));
      }
    }
    return std::nullopt;
  }

  Reason edit(RootPlan& plan, const std::string& text) const {
    if (!has_loader()) {
      return "the image has a loader's cache, but no loader of this architecture";
    }
    Result<nvidia::LoaderCache> cache = nvidia::parse_loader_cache(text);
    if (!cache || !is_ordered(*cache)) {
      return cache ? "the entries of the image's loader's cache are out of order" : cache.error().message;
    }
    const std::vector<Library> own = read_own_libraries(root_, options_.driver_version);
    std::vector<CachedLibrary> libraries;
    for (const std::vector<Library>* part : {&own, &driver_}) {
      std::ranges::transform(*part, std::back_inserter(libraries), [](const Library& library) {
        return CachedLibrary{library.name, library.path, library.flags};
      });
    }
    put_first(*cache, libraries, [this](std::string_view path) { return is_gone(std::string(path)); });
    std::string edited = render_loader_cache(*cache);
    if (!nvidia::parse_loader_cache(edited)) {
      return "the driver has a library with an impossible name";
    }
    plan.cache = edited == text ? std::nullopt : std::optional(std::move(edited));
    return std::nullopt;
  }

  // Libraries of the same names as the driver's: is it the same directory under another name, or no file any more?
  [[nodiscard]] bool is_gone(const std::string& path) const {
    const std::optional<kernel::Found> directory = kernel::find_in(root_, directory_of(path));
    const auto is_same = [&](const std::string& ours) {
      const std::optional<kernel::Found> found = kernel::find_in(root_, ours);
      return found && found->path == directory->path;
    };
    return !directory || std::ranges::any_of(options_.directories, is_same) || !kernel::find_in(root_, path);
  }

  const kernel::Host& host_;
  int root_;
  const HookOptions& options_;
  std::vector<Library> driver_;
};

// NVIDIA's libraries create device nodes of GPUs that a container does not have, where they may.
bool may_create_nodes(const kernel::Host& host, const DeliveryInput& input, const Delivery& delivery) {
  if (!input.spec.may_create_nodes || input.spec.has_user_namespace || delivery.has_every_gpu) {
    return false;
  }
  const Result<std::string> params = kernel::read_text(host.root.get(), "proc/driver/nvidia/params");
  return params && params->find("ModifyDeviceFiles: 1") != std::string::npos;
}

// Replaces hooks one by one, and collects why some are left.
class HookReplacement {
 public:
  HookReplacement(const kernel::Host& host, const DeliveryInput& input, Delivery& delivery)
      : host_(host), input_(input), delivery_(delivery) {
    root_input_.mounts = delivery.change.edits.mounts;
    std::ranges::transform(input.spec.mounts, std::back_inserter(root_input_.mounts),
                           [](const oci::SpecMount& mount) { return MountEdit{mount.source, mount.destination}; });
    std::ranges::transform(delivery.change.edits.nodes, std::back_inserter(root_input_.nodes),
                           &container::NodeEdit::path);
    std::ranges::transform(input.spec.nodes, std::back_inserter(root_input_.nodes), &oci::SpecNode::path);
    root_input_.identities = delivery.identities;
    root_input_.keeps_device_files = may_create_nodes(host, input, delivery);
  }

  std::vector<std::string> replace() {
    std::vector<HookEdit> hooks = std::exchange(delivery_.change.edits.hooks, {});
    for (const oci::Hook& hook : input_.spec.hooks) {
      if (is_replaceable(hook)) {
        delivery_.change.dropped_hooks.push_back(hook.path);
        hooks.push_back(edit_of(hook));
      }
    }
    for (const HookEdit& hook : hooks) {
      replace(hook);
    }
    return std::move(reasons_);
  }

 private:
  static HookEdit edit_of(const oci::Hook& hook) {
    return {.stage = container::parse_hook_stage(hook.stage).value_or(container::HookStage::prestart),
            .path = hook.path,
            .arguments = hook.arguments};
  }

  // Hooks are dropped by their paths: all that have this path must be ours, with options that are known here.
  [[nodiscard]] bool is_replaceable(const oci::Hook& hook) const {
    return std::ranges::all_of(input_.spec.hooks, [&hook](const oci::Hook& other) {
      return other.path != hook.path || nvidia::options_of(edit_of(other)).has_value();
    });
  }

  void replace(const HookEdit& hook) {
    const std::optional<HookOptions> options = nvidia::options_of(hook);
    if (!options) {
      keep(hook);
      return;
    }
    if (input_.spec.has_user_namespace) {
      keep(hook);
      reasons_.emplace_back("the container has a user namespace");
      return;
    }
    const Result<RootPlan> done = prepare(*options);
    if (!done) {
      keep(hook);
      reasons_.push_back("its root file system cannot be prepared: " + done.error().message);
    } else if (!done->reasons.empty()) {
      std::ranges::copy(done->reasons, std::back_inserter(reasons_));
      keep(hook_of(done->rest, hook.path));
    }
  }

  void keep(const HookEdit& hook) { append(delivery_.change.edits, {.hooks = {hook}}); }

  Result<RootPlan> prepare(const HookOptions& options) const {
    if (input_.spec.root.empty()) {
      return fail(std::errc::invalid_argument, "the spec names no root");
    }
    std::string path = input_.spec.root.starts_with('/') ? input_.spec.root : input_.bundle + "/" + input_.spec.root;
    path.erase(path.find_last_not_of('/') + 1);  // behind a slash a symlink would be followed
    // A symlink as its root is refused by runtimes, and could lead anywhere.
    const kernel::Fd root = TRY(kernel::open_plain_directory(AT_FDCWD, path));
    RootPlan plan = plan_root(host_, root.get(), options, root_input_);
    TRY(carry_out(root.get(), plan));
    return plan;
  }

  const kernel::Host& host_;
  const DeliveryInput& input_;
  Delivery& delivery_;
  RootInput root_input_;
  std::vector<std::string> reasons_;
};

Result<void> replace_file_inside(int root, const std::string& directory, const char* name, const std::string& text) {
  const kernel::Fd opened = TRY(kernel::make_directory_inside(root, directory));
  return kernel::replace_file(opened.get(), name, {text, 0644});
}

}  // namespace

RootPlan plan_root(const kernel::Host& host, int root, const HookOptions& options, const RootInput& input) {
  RootPlan plan;
  plan.links = options.links;
  plan.rest.spec = options.spec;
  CachePlan(host, root, options).make(plan, input);
  if (options.limits_graphics) {
    plan.graphics_profile = nvidia::graphics_profile(input.nodes);
  }
  if (options.keeps_device_files && input.keeps_device_files) {
    plan.rest.keeps_device_files = true;
    plan.reasons.emplace_back("it has CAP_MKNOD and not every GPU, and the driver's ModifyDeviceFiles is 1");
  }
  return plan;
}

Result<void> carry_out(int root, const RootPlan& plan) {
  std::map<std::string, std::vector<kernel::Symlink>> links;
  for (const HookOptions::Link& link : plan.links) {
    links[directory_of(link.path)].push_back({std::string(base_name(link.path)), link.target});
  }
  for (const auto& [directory, its] : links) {
    TRY(kernel::make_symlinks_inside(root, directory, its));
  }
  if (!plan.graphics_profile.empty()) {
    TRY(replace_file_inside(root, nvidia::kGraphicsProfileDirectory, nvidia::kGraphicsProfileName,
                            plan.graphics_profile));
  }
  return plan.cache ? replace_file_inside(root, kEtc, kCacheName, *plan.cache) : Result<void>();
}

std::vector<std::string> replace_hooks(const kernel::Host& host, const DeliveryInput& input, Delivery& delivery) {
  return HookReplacement(host, input, delivery).replace();
}

}  // namespace hf::shim
