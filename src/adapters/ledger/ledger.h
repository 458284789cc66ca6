// Ledger: the device nodes that holdfast gave to a container, one file each under /run/holdfast/ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/container.h"
#include "core/container/entitlement/entitlement.h"
#include "kernel/files/host.h"

namespace hf::ledger {

inline constexpr const char* kDirectory = "/run/holdfast/ledger";

struct Entry {
  container::ContainerId container;
  // An id may be reused, or belong to another engine's container: at least one of these is set, and what is set must
  // match.
  std::string bundle;
  std::string cgroup;  // the container's own, as a path in its hierarchy
  std::vector<container::WantedNode> nodes;
};

Result<Entry> parse_entry(std::string_view text);
std::string render_entry(const Entry& entry);

// The entry of a container. Absent if there is none; an error if it is damaged, or others than root may write
// it.
Result<std::optional<Entry>> read_entry(const kernel::Host& host, const container::ContainerId& id);

// The directory of the entries, for root only: created if it is missing, removed if it is empty.
Result<void> make_directory(const kernel::Host& host);
void remove_empty_directory(const kernel::Host& host);

// Replaces the file by rename: a reader finds the old entry, the new one, or none.
Result<void> save_entry(const kernel::Host& host, const Entry& entry);
void remove_entry(const kernel::Host& host, const container::ContainerId& id);
// Removes the entries of bundles that are gone: `run` removes its container without calling us.
void remove_orphans(const kernel::Host& host);

}  // namespace hf::ledger
