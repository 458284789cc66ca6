// Shield: a program on the parent of a container's cgroup that keeps devices open for that container, whatever happens
// to the container's own rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/container/entitlement/entitlement.h"
#include "core/container/gate/gate.h"

namespace hf::container {

struct ShieldPlan {
  std::vector<ShieldEntry> entries;  // counts are 0
  std::vector<std::string> refused;  // "/dev/nvidia0: …": devices without an entry, and why
};

// `observed`: the gates of a cgroup of the container. `parent_depth`: the depth of the cgroup above the container's
// own, which has the shield. A device gets an entry only while every gate of that parent and of the cgroups above it
// allows it, so that the shield overrules none of them. A cgroup inside the container gets entries only where no
// program is attached between it and the container's own.
ShieldPlan plan_shield(const Entitlement& owed, const Observed& observed, unsigned parent_depth);

// Returns why no shield may be attached to the parent, or "": it would switch off a program above that was attached
// without ALLOW_MULTI.
std::string why_not_shielded(const Observed& observed, unsigned parent_depth);

// Whether the shield keeps open everything that a container is owed, according to its gates.
struct ShieldCover {
  bool is_on = false;
  std::size_t devices = 0;  // with an entry
  std::uint64_t count = 0;  // requests that it let through although the rules refused them
  std::string why;          // where it is not on
};
ShieldCover cover_of(const Entitlement& owed, const Observed& observed);

}  // namespace hf::container
