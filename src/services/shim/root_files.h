// RootFiles: what our hook would do in a container's root file system, done before the container exists: a container
// without a hook starts as fast as any other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/nvidia/hook_options.h"
#include "core/base/result.h"
#include "core/container/entitlement/edits.h"
#include "kernel/files/host.h"
#include "services/shim/delivery.h"

namespace hf::shim {

struct RootPlan {
  std::vector<nvidia::HookOptions::Link> links;
  std::optional<std::string> cache;  // the new text of /etc/ld.so.cache; absent: it stays as it is
  std::string graphics_profile;      // "": none
  nvidia::HookOptions rest;          // what only the hook can do
  std::vector<std::string> reasons;  // why; empty where there is nothing left for it
  std::vector<std::string> notes;    // what is left undone, for the log
  std::string refusal;               // why no runtime could start the container; "": none
};

struct RootInput {
  std::vector<container::MountEdit> mounts;                   // those of the driver's libraries among them
  std::vector<std::string> nodes;                             // paths of the container's device nodes
  std::map<std::string, nvidia::LibraryIdentity> identities;  // of libraries, by their paths on the host
  bool keeps_device_files = false;  // whether the driver's libraries could create other nodes in it
  bool is_read_only = false;        // no symlink can be made in it, and the cache is mounted
};

// Changes nothing. `root`: of the container; it has the content of an image, which is not trusted.
RootPlan plan_root(const kernel::Host& host, int root, const nvidia::HookOptions& options, const RootInput& input);
Result<void> carry_out(int root, const RootPlan& plan);

// For the log.
struct ReplacedHooks {
  std::vector<std::string> reasons;  // why there is a hook left
  std::vector<std::string> notes;
};

// The loader's cache in the bundle, for a root file system that cannot be written. It lives as long as the bundle.
inline constexpr const char* kCacheInBundle = "holdfast-ld.so.cache";

// Does what our hooks among the edits and in the spec would do, and leaves what is still needed of them. Fails, with
// cause and cure in one line, where no runtime could mount the driver's files.
Result<ReplacedHooks> replace_hooks(const kernel::Host& host, const DeliveryInput& input, Delivery& delivery);

}  // namespace hf::shim
