// Cdi: the specs of the Container Device Interface on this host, and the edits that a device's name stands for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cdi/spec.h"
#include "core/container/entitlement/edits.h"
#include "kernel/files/host.h"

namespace hf::cdi {

struct BrokenSpec {
  std::string file;
  std::string why;
};

// All specs, in increasing precedence of their directories: /etc/cdi, then /var/run/cdi.
struct Registry {
  std::vector<Spec> specs;
  std::vector<BrokenSpec> broken;
  struct Shadow {
    std::string device;        // "nvidia.com/gpu=0"
    std::string by;            // the file in effect
    std::string hidden;        // the file that it overrides
    bool is_conflict = false;  // both in one directory: neither is in effect
  };
  std::vector<Shadow> shadows;

  // The edits of a fully qualified name, those of the whole spec first; absent if no spec defines it, or more than one
  // of the same directory.
  [[nodiscard]] std::optional<container::ContainerEdits> edits_of(const std::string& name) const;
  [[nodiscard]] bool is_effective(const Spec& spec, const std::string& device) const;
  // The edits of a spec that are in effect; none where other specs hide all of its devices.
  [[nodiscard]] std::vector<const container::ContainerEdits*> effective_edits(const Spec& spec) const;
};
Registry read_registry(const kernel::Host& host);

}  // namespace hf::cdi
