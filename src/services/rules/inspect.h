// Inspect: reads the rules of a target, and answers whether they allow a request.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/gate/gate.h"
#include "core/device/device.h"
#include "core/report/rules_report.h"
#include "host/open_host.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/filters.h"
#include "kernel/container/container_handle.h"
#include "kernel/container/probe.h"
#include "kernel/files/host.h"
#include "services/rules/target.h"

namespace hf::rules {

// A target, opened and read once; where its rules cannot be read, a probe in its cgroups asks the kernel.
class Inspection {
 public:
  static Result<Inspection> open(host::HostOpener& opener, const NamedTarget& named);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const container::Observed& observed() const { return observed_; }
  report::TargetRules rules();
  container::Answer ask(const device::Request& request);

 private:
  Inspection(std::string name, container::Observed observed) : name_(std::move(name)), observed_(std::move(observed)) {}

  Result<kernel::Probe*> probe();

  std::string name_;
  container::Observed observed_;
  std::optional<kernel::CgroupsOfProcess> cgroups_;  // absent for programs and files
  std::optional<kernel::Cgroup> root_elsewhere_;     // the root of a hierarchy that the target is not in
  std::optional<Result<kernel::Probe>> probe_;
};

Result<report::HostRules> inspect_host(host::HostOpener& opener);

// The cgroups that decide about the target's devices, and those of them that may be changed for it: of a container,
// only its own.
Result<kernel::CgroupsOfProcess> open_cgroups(const kernel::Host& host, const Target& target);
Result<kernel::CgroupsPtr> open_own_cgroups(const kernel::Host& host, const Target& target);

}  // namespace hf::rules
