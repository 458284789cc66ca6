// Cdi: the specs of the Container Device Interface on this node, and what a device's name in them stands for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cdi/spec.h"
#include "core/container/edits.h"
#include "kernel/host.h"

namespace hf::cdi {

struct BrokenSpec {
  std::string file;
  std::string why;
};

// All specs there are, those of the weaker folder first: /etc/cdi, then /var/run/cdi.
struct Registry {
  std::vector<Spec> specs;
  std::vector<BrokenSpec> broken;
  struct Shadow {
    std::string device;        // "nvidia.com/gpu=0"
    std::string by;            // the file that counts
    std::string hidden;        // the file that does not
    bool is_conflict = false;  // both in one folder: neither counts
  };
  std::vector<Shadow> shadows;

  // The edits of a fully qualified name, those of the whole spec first; absent where no spec, or more than one of the
  // same folder, has it.
  [[nodiscard]] std::optional<container::ContainerEdits> edits_of(const std::string& name) const;
  [[nodiscard]] bool is_effective(const Spec& spec, const std::string& device) const;
};
Registry read_registry(const kernel::Host& host);

}  // namespace hf::cdi
