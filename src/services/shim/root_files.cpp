#include "services/shim/root_files.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fcntl.h>

#include "adapters/nvidia/graphics_profile.h"
#include "core/base/add_missing.h"
#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "kernel/files/lock.h"
#include "kernel/files/rooted_fs.h"
#include "services/shim/cache_plan.h"
#include "services/shim/image_paths.h"
#include "services/shim/refusal.h"

namespace hf::shim {
namespace {

using container::HookEdit;
using container::MountEdit;
using nvidia::HookOptions;

constexpr std::chrono::milliseconds kLongestWait{100};

// A root file system that was prepared before has it already.
bool lacks_graphics_profile(int root, const RootPlan& plan) {
  const std::string path = std::string(nvidia::kGraphicsProfileDirectory) + "/" + nvidia::kGraphicsProfileName;
  return !plan.graphics_profile.empty() && kernel::read_start_in(root, path, plan.graphics_profile.size() + 1,
                                                                 kernel::Mounts::of_root) != plan.graphics_profile;
}

// NVIDIA's libraries create device nodes of GPUs that a container does not have, where they may.
bool may_create_nodes(const kernel::Host& host, const DeliveryInput& input, const Delivery& delivery) {
  if (!input.spec.may_create_nodes || input.spec.has_user_namespace || delivery.has_every_gpu) {
    return false;
  }
  const Result<std::string> params = kernel::read_text(host.root.get(), "proc/driver/nvidia/params");
  return params && params->find("ModifyDeviceFiles: 1") != std::string::npos;
}

void keep_device_files(const HookOptions& options, const RootInput& input, RootPlan& plan) {
  plan.rest.spec = options.spec;
  if (options.keeps_device_files && input.keeps_device_files) {
    plan.rest.keeps_device_files = true;
    plan.reasons.emplace_back("it has CAP_MKNOD and not every GPU, and the driver's ModifyDeviceFiles is 1");
  }
}

// Replaces hooks one by one, and collects why some are left.
class HookReplacement {
 public:
  HookReplacement(const kernel::Host& host, const DeliveryInput& input, Delivery& delivery)
      : host_(host), input_(input), delivery_(delivery) {
    root_input_.mounts = delivery.change.edits.mounts;
    for (const oci::SpecMount& mount : input.spec.mounts) {
      if (mount.source != cache_in_bundle()) {
        root_input_.mounts.push_back({mount.source, mount.destination});
      }
    }
    std::ranges::transform(delivery.change.edits.nodes, std::back_inserter(root_input_.nodes),
                           &container::NodeEdit::path);
    std::ranges::transform(input.spec.nodes, std::back_inserter(root_input_.nodes), &oci::SpecNode::path);
    root_input_.identities = delivery.identities;
    root_input_.keeps_device_files = may_create_nodes(host, input, delivery);
  }

  Result<ReplacedHooks> replace() {
    std::vector<HookEdit> hooks = std::exchange(delivery_.change.edits.hooks, {});
    for (const oci::Hook& hook : input_.spec.hooks) {
      if (!is_replaceable(hook)) {
        continue;
      }
      add_missing(delivery_.change.dropped_hooks, {hook.path});
      // With a CDI device that is named by an annotation, the spec has the hook already.
      if (std::ranges::none_of(hooks, [&hook](const HookEdit& other) { return is_same(other, edit_of(hook)); })) {
        hooks.push_back(edit_of(hook));
      }
    }
    for (const HookEdit& hook : hooks) {
      TRY(replace(hook));
    }
    return std::move(replaced_);
  }

 private:
  static HookEdit edit_of(const oci::Hook& hook) {
    return {.stage = container::parse_hook_stage(hook.stage).value_or(container::HookStage::prestart),
            .path = hook.path,
            .arguments = hook.arguments,
            .environment = hook.environment,
            .timeout = hook.timeout};
  }

  static bool is_same(const HookEdit& a, const HookEdit& b) {
    return a.path == b.path && nvidia::options_of(a) == nvidia::options_of(b);
  }

  // Hooks are dropped by their paths: all that have this path must be ours, with options that are known here.
  [[nodiscard]] bool is_replaceable(const oci::Hook& hook) const {
    return std::ranges::all_of(input_.spec.hooks, [&hook](const oci::Hook& other) {
      return other.path != hook.path || nvidia::options_of(edit_of(other)).has_value();
    });
  }

  Result<void> replace(const HookEdit& hook) {
    const std::optional<HookOptions> options = nvidia::options_of(hook);
    if (!options) {
      keep(hook);
      return {};
    }
    if (input_.spec.has_user_namespace) {
      keep(hook);
      replaced_.reasons.emplace_back("the container has a user namespace");
      return {};
    }
    const Result<RootPlan> done = prepare(*options);
    if (!done) {
      keep(hook);
      replaced_.reasons.push_back("its root file system cannot be prepared: " + done.error().message);
      return {};
    }
    if (!done->refusal.empty()) {
      return refuse(done->refusal);
    }
    std::ranges::copy(done->notes, std::back_inserter(replaced_.notes));
    if (!done->reasons.empty()) {
      std::ranges::copy(done->reasons, std::back_inserter(replaced_.reasons));
      keep_rest(hook, done->rest);
    }
    return {};
  }

  // With the deadline and the environment that it has.
  void keep_rest(HookEdit hook, const HookOptions& rest) {
    hook.arguments = hook_of(rest, hook.path).arguments;
    keep(hook);
  }

  void keep(const HookEdit& hook) { append(delivery_.change.edits, {.hooks = {hook}}); }

  [[nodiscard]] std::string cache_in_bundle() const { return input_.bundle + "/" + kCacheInBundle; }

  [[nodiscard]] Result<kernel::Fd> open_root() const {
    if (input_.spec.root.empty()) {
      return fail(std::errc::invalid_argument, "the spec names no root");
    }
    std::string path = input_.spec.root.starts_with('/') ? input_.spec.root : input_.bundle + "/" + input_.spec.root;
    path.erase(path.find_last_not_of('/') + 1);  // behind a slash a symlink would be followed
    // A symlink as its root is refused by runtimes, and could lead anywhere.
    return kernel::open_plain_directory(AT_FDCWD, path.empty() ? "/" : path);
  }

  [[nodiscard]] Result<RootPlan> prepare(const HookOptions& options) {
    const kernel::Fd root = TRY(open_root());
    if (kernel::is_same_directory(root.get(), host_.root.get())) {
      RootPlan plan;
      plan.notes.emplace_back("its root file system is the host's own, and stays as it is");
      keep_device_files(options, root_input_, plan);
      return plan;
    }
    // Two starts in one root edit the same cache. Without the lock one of the edits may be lost, and that is all.
    (void)kernel::lock_within(root, kLongestWait);
    {
      RootPlan plan = plan_root(host_, root.get(), options, root_input_);
      const Result<void> done = carry_out(root.get(), plan);
      const bool is_done = done && !plan.rest.changes_root();
      if (is_done || !kernel::is_read_only(root.get())) {
        TRY(done);
        return plan;
      }
    }  // the plan may have a cache of 16 MiB, and the next one has another
    return prepare_read_only(root.get(), options);
  }

  // The hook could not write either. Mounts do what can be done.
  RootPlan prepare_read_only(int root, const HookOptions& options) {
    RootInput input = root_input_;
    input.is_read_only = true;
    RootPlan plan = plan_root(host_, root, options, input);
    plan.notes.emplace_back("its root file system is read-only: no symlinks are made to the driver's libraries");
    if (lacks_graphics_profile(root, plan)) {
      plan.notes.emplace_back("its root file system is read-only: graphics is not limited to its GPUs");
    }
    if (const std::string missing = find_missing_mount_point(root); !missing.empty()) {
      plan.refusal = "its root file system is read-only, and has no " + missing +
                     " where the driver's could be mounted: start it once with a writable one, or put a writable "
                     "layer over it";
    } else if (plan.cache) {
      mount_cache(root, plan);
    }
    return plan;
  }

  // Of the driver's files: where a runtime would have to create something. Below other mounts it may be able to. ""
  // also where that takes too many lookups: then the runtime finds out.
  [[nodiscard]] std::string find_missing_mount_point(int root) const {
    ImagePaths paths(root, {});
    std::vector<std::string> ends;
    std::ranges::transform(root_input_.mounts, std::back_inserter(ends),
                           [&paths](const MountEdit& mount) { return paths.follow(mount.destination) + "/"; });
    for (const MountEdit& mount : delivery_.change.edits.mounts) {
      const std::string end = paths.follow(mount.destination);
      const bool is_there = !paths.resolve(end).empty() || std::ranges::any_of(ends, [&end](const std::string& other) {
        return end.starts_with(other) || other == "//";
      });
      if (!is_there) {
        return paths.has_too_many_lookups() ? std::string() : mount.destination;
      }
    }
    return {};
  }

  void mount_cache(int root, RootPlan& plan) {
    const std::string path = std::string(kEtc) + "/" + kCacheName;
    const std::optional<kernel::Found> found = kernel::find_in(root, path);
    const Result<void> written = found && found->kind == kernel::EntryKind::file
                                     ? kernel::replace_file(AT_FDCWD, cache_in_bundle(), {*plan.cache, 0644})
                                     : fail(std::errc::no_such_file_or_directory, "there is no file to mount it over");
    if (written) {
      append(delivery_.change.edits,
             {.mounts = {{cache_in_bundle(), path, "", {"ro", "nosuid", "nodev", "noexec", "rbind", "rprivate"}}}});
    } else {
      plan.notes.push_back("the loader's cache is not mounted: " + written.error().message);
    }
  }

  const kernel::Host& host_;
  const DeliveryInput& input_;
  Delivery& delivery_;
  RootInput root_input_;
  ReplacedHooks replaced_;
};

Result<void> replace_file_inside(int root, const std::string& directory, const char* name, const std::string& text) {
  const kernel::Fd opened = TRY(kernel::make_directory_inside(root, directory));
  return kernel::replace_file(opened.get(), name, {text, 0644});
}

}  // namespace

RootPlan plan_root(const kernel::Host& host, int root, const HookOptions& options, const RootInput& input) {
  RootPlan plan;
  plan.links = options.links;
  plan_cache(host, root, options, input, plan);
  if (options.limits_graphics) {
    plan.graphics_profile = nvidia::graphics_profile(input.nodes);
  }
  keep_device_files(options, input, plan);
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
  if (lacks_graphics_profile(root, plan)) {  // it may be read-only now
    TRY(replace_file_inside(root, nvidia::kGraphicsProfileDirectory, nvidia::kGraphicsProfileName,
                            plan.graphics_profile));
  }
  return plan.cache ? replace_file_inside(root, kEtc, kCacheName, *plan.cache) : Result<void>();
}

Result<ReplacedHooks> replace_hooks(const kernel::Host& host, const DeliveryInput& input, Delivery& delivery) {
  return HookReplacement(host, input, delivery).replace();
}

}  // namespace hf::shim
