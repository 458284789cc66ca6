// NodeSetup: the nodes and links that this node's devices ought to have under /dev, and a udev rule that keeps it so.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/report/setup_report.h"
#include "kernel/host.h"
#include "services/setup/engine_setup.h"

namespace hf::setup {

enum class Modules : std::uint8_t { leave, load };

struct NodeOrder {
  std::string program;                      // that the rule runs: our own
  std::string modprobe = "/sbin/modprobe";  // that loads modules
  Modules modules = Modules::leave;
  Doing doing = Doing::carry_out;
};

inline constexpr const char* kUdevRule = "/etc/udev/rules.d/71-holdfast.rules";
std::string udev_rule_for(const std::string& program);

// What cannot be done is told in the report; the rest is done.
Result<report::SetupReport> set_up_node(const kernel::Host& host, const NodeOrder& order);
// Nodes and links stay: the driver's numbers are right with us and without us, and /dev is made anew at every start.
Result<report::SetupReport> undo_node(const kernel::Host& host, const NodeOrder& order);

}  // namespace hf::setup
