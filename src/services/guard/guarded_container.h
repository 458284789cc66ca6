// GuardedContainer: a container under guard, as the last survey found it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shared.h"
#include "core/container/container.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/entitlement/node_state.h"
#include "core/container/guard/policy.h"
#include "kernel/container/container_handle.h"

namespace hf::guard {

struct GuardedContainer {
  container::Container container;
  Shared<container::Entitlement> owed;
  Shared<container::Entitlement> healed;         // the part of it that the policy lets us restore: mostly all
  container::Mode mode = container::Mode::heal;  // the strongest among the modes of its device classes
  kernel::ContainerHandlePtr handle;
  std::vector<container::OwedNode> to_harden;  // that systemd's unit does not list, and the policy lets us add to it
  std::uint64_t first_seen_at = 0;             // nanoseconds of CLOCK_MONOTONIC
  container::Pid creator;  // while it is being created: the runtime's process, whose hooks may still give it devices

  // The cgroups whose rules may be changed: none where its first process was moved out of the container's own cgroups.
  [[nodiscard]] const std::vector<kernel::CgroupsPtr>& cgroups() const { return handle->own(); }
};

// A container's first process. An id alone is not unique: engines have namespaces.
struct ContainerKey {
  std::int32_t pid = 0;
  std::int64_t started_ticks = 0;

  friend auto operator<=>(const ContainerKey&, const ContainerKey&) = default;
};
inline ContainerKey key_of(const container::Container& it) { return {it.init.value, it.started_ticks}; }
inline ContainerKey key_of(const GuardedContainer& guarded) { return key_of(guarded.container); }

// Shared by all that use a survey: the loop, the recorder, the surveyor.
using GuardedContainerPtr = std::shared_ptr<const GuardedContainer>;

}  // namespace hf::guard
