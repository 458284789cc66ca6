// Inspect: the rules of a target, and answers about it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/gate.h"
#include "core/device/device.h"
#include "core/report/rules_report.h"
#include "kernel/bpf_api.h"
#include "kernel/container_handle.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "kernel/probe.h"
#include "services/rules/target.h"

namespace hf::rules {

// The machine, opened when first needed: a filter in a file can be read anywhere.
class Node {
 public:
  Result<const kernel::Host*> host();
  Result<kernel::Filters*> filters();

 private:
  std::optional<kernel::Host> host_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::optional<kernel::Filters> filters_;
};

// A target, opened and read once; what the rules do not tell is asked by a probe in its cgroups.
class Inspection {
 public:
  static Result<Inspection> open(Node& node, const NamedTarget& named);

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
  std::optional<kernel::Cgroup> elsewhere_;          // the root of a hierarchy the target is not about
  std::optional<Result<kernel::Probe>> probe_;
};

Result<report::NodeRules> inspect_node(Node& node);

// Where the target's rules are decided, and those of them that may be changed for it: of a container, only its own.
Result<kernel::CgroupsOfProcess> open_cgroups(const kernel::Host& host, const Target& target);
Result<kernel::CgroupsPtr> open_own_cgroups(const kernel::Host& host, const Target& target);

}  // namespace hf::rules
