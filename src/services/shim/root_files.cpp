#include "services/shim/root_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fcntl.h>

#include "adapters/nvidia/graphics_profile.h"
#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "services/shim/cache_plan.h"
#include "services/shim/image_paths.h"

namespace hf::shim {
namespace {

using container::HookEdit;
using container::MountEdit;
using nvidia::HookOptions;

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

  [[nodiscard]] Result<RootPlan> prepare(const HookOptions& options) const {
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
  plan_cache(host, root, options, input, plan);
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
