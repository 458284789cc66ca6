// Machine: this host, opened for the commands that look at containers.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "kernel/bpf_api.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "kernel/seat.h"
#include "services/doctor/facts.h"
#include "services/rules/target.h"

namespace hf::programs {

class OpenMachine {
 public:
  static Result<std::unique_ptr<OpenMachine>> open();

  [[nodiscard]] doctor::Machine& get() { return machine_; }

 private:
  explicit OpenMachine(kernel::Host host);

  kernel::Host host_;
  std::unique_ptr<kernel::Bpf> bpf_;
  kernel::Filters filters_;
  std::unique_ptr<kernel::Seats> seats_;
  doctor::Machine machine_;
};

// The container that a word names, shown as "pid:N"; or what a word in another form (pid:, cgroup:, program:, file:)
// means.
Result<rules::NamedTarget> target_of(const std::string& word);

}  // namespace hf::programs
