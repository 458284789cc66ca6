// Ledger: what holdfast gave to a container, one file each under /run/holdfast/ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/container.h"
#include "core/container/entitlement.h"
#include "kernel/host.h"

namespace hf::ledger {

inline constexpr const char* kFolder = "/run/holdfast/ledger";

struct Entry {
  container::ContainerId container;
  // An id may be used again, or be somebody else's: at least one of these is there, and what is there must fit.
  std::string bundle;
  std::string cgroup;  // the container's own, as a path in its hierarchy
  std::vector<container::WantedNode> nodes;
};

Result<Entry> parse_entry(std::string_view text);
std::string write_entry(const Entry& entry);

// The entry of a container. Absent where there is none; an error where it is damaged, or not root's alone.
Result<std::optional<Entry>> read_entry(const kernel::Host& host, const container::ContainerId& id);

// Where entries lie, root's alone. Made where it is missing; it goes again, where it is empty.
Result<void> make_folder(const kernel::Host& host);
void remove_empty_folder(const kernel::Host& host);

// By rename: whoever reads it finds the old entry, the new one, or none.
Result<void> save_entry(const kernel::Host& host, const Entry& entry);
void remove_entry(const kernel::Host& host, const container::ContainerId& id);
// Entries of bundles that are gone: `run` removes its container without telling us.
void remove_orphans(const kernel::Host& host);

}  // namespace hf::ledger
