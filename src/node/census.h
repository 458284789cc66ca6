// Census: every container on this node, from cgroups and /proc outwards; no engine is asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/oci/spec.h"
#include "core/base/result.h"
#include "core/container/container.h"
#include "kernel/host.h"

namespace hf::node {

struct Resident {
  container::Container container;
  std::optional<oci::Spec> spec;  // of its bundle, where it can be read and trusted
  std::string spec_file;
  std::string spec_problem;  // why there is none
};

struct Census {
  std::vector<Resident> residents;
  std::vector<std::string> notes;  // what could not be looked at

  [[nodiscard]] std::vector<container::Container> containers() const;
};

// `before`: who was known already, with the same first process in the same cgroup, is not asked again.
Result<Census> take_census(const kernel::Host& host, const config::Config& config, const Census* before = nullptr);

}  // namespace hf::node
