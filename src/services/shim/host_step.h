// HostStep: a change of the host that is made before a container starts.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/entitlement.h"
#include "core/device/device.h"
#include "kernel/files/host.h"

namespace hf::shim {

// Replaces a device node with stale numbers.
struct CreateNode {
  std::string path;
  device::Device device;
  container::Permissions permissions;

  friend bool operator==(const CreateNode&, const CreateNode&) = default;
};

// Leaves a path alone that already resolves to a file.
struct CreateSymlink {
  std::string path;
  std::string target;

  friend bool operator==(const CreateSymlink&, const CreateSymlink&) = default;
};

// For the next container (nvidia/driver_cache.h).
struct CacheDriver {
  std::string contents;

  friend bool operator==(const CacheDriver&, const CacheDriver&) = default;
};

struct HostStep {
  std::variant<CreateNode, CreateSymlink, CacheDriver> change;
  bool may_fail = false;  // the container works without it

  friend bool operator==(const HostStep&, const HostStep&) = default;
};

// Ends at the first step that fails and may not.
Result<void> carry_out(const kernel::Host& host, const std::vector<HostStep>& steps);

}  // namespace hf::shim
