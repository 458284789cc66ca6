// Shield: what a program on the parent of a container's cgroup keeps open for that container, whatever happens to the
// container's own rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/container/entitlement.h"
#include "core/container/gate.h"

namespace hf::container {

struct ShieldPlan {
  std::vector<ShieldEntry> entries;  // counts are 0
  std::vector<std::string> refused;  // "/dev/nvidia0: …": devices without an entry, and why
};

// `observed`: of a cgroup of the container. `parent_depth`: of the cgroup above the container's own, where the shield
// is. A device is entered only while every gate of that parent and of the cgroups above it allows it: those keep their
// say. A cgroup inside the container is entered only where no program stands between it and the container's own.
ShieldPlan plan_shield(const Entitlement& owed, const Observed& observed, unsigned parent_depth);

// Whether a shield may be attached to the parent: a program above that was attached without ALLOW_MULTI would be
// switched off by it. "" or why not.
std::string why_not_shielded(const Observed& observed, unsigned parent_depth);

// Whether the shield keeps open all that a container is owed, as its gates show it.
struct ShieldCover {
  bool is_on = false;
  std::size_t devices = 0;  // with an entry
  std::uint64_t count = 0;  // how often it let through what the rules refused
  std::string why;          // where it is not on
};
ShieldCover cover_of(const Entitlement& owed, const Observed& observed);

}  // namespace hf::container
