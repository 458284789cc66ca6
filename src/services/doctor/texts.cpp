#include "services/doctor/texts.h"

#include <algorithm>

#include "core/base/shell.h"
#include "core/base/text.h"
#include "core/report/verdict.h"

namespace hf::doctor {
namespace {

using container::AccessFailure;
using container::NodeState;
using report::Finding;
using report::Severity;

}  // namespace

Nodes nodes_with(const ContainerFacts& facts, AccessFailure failure) {
  Nodes nodes;
  for (const NodeState& node : facts.nodes) {
    if (node.diagnosis.failure == failure && node.is_inaccessible()) {
      nodes.push_back(&node);
    }
  }
  return nodes;
}

Severity severity_of(const Nodes& nodes) {
  const bool only_helpers = std::ranges::all_of(nodes, [](const NodeState* node) {
    return node->owed->part == device::Part::helper || node->owed->part == device::Part::extra;
  });
  return only_helpers ? Severity::warning : Severity::critical;
}

std::vector<std::string> paths_of(const Nodes& nodes) {
  std::vector<std::string> paths;
  paths.reserve(nodes.size());
  for (const NodeState* node : nodes) {
    paths.push_back(node->owed->path);
  }
  return paths;
}

std::string list_paths(const Nodes& nodes) { return join(paths_of(nodes), ", "); }

std::vector<std::string> diagnosis_lines(const Nodes& nodes) {
  std::vector<std::string> lines;
  for (const NodeState* node : nodes) {
    lines.push_back(node->owed->path + ": " + node->diagnosis.text);
  }
  return lines;
}

Finding finding_for_host(const char* code, Severity severity, std::string what) {
  return {code, severity, "host", {}, std::move(what), {}, {}, {}};
}

Finding finding_for(const ContainerFacts& facts, const char* code, Severity severity, std::string what) {
  const container::Container& it = facts.container();
  const std::string subject = title_of(it) + (it.shares_title ? " (" + short_id(it.id) + ")" : "");
  return {code, severity, subject, it.id.value, std::move(what), {}, {}, {}};
}

Finding finding_about(const ContainerFacts& facts, const char* code, const Nodes& nodes, std::string what) {
  Finding finding = finding_for(facts, code, severity_of(nodes), std::move(what));
  finding.nodes = paths_of(nodes);
  return finding;
}

std::string grant_command(const ContainerFacts& facts, const Nodes& nodes) {
  std::string command = "holdfast grant " + report::argument_of(facts.container());
  for (const NodeState* node : nodes) {
    if (node->owed->device) {
      command += " '" + to_string(*node->owed->device) + " " + to_string(request_for(*node->owed).access) + "'";
    }
  }
  return command;
}

std::optional<std::string> heal_command(const ContainerFacts& facts, const Nodes& nodes) {
  // Not mknod: the container may have placed symlinks in the path that lead out of its file system.
  const bool any = std::ranges::any_of(nodes, [](const NodeState* node) { return node->owed->device.has_value(); });
  return any ? std::optional("holdfast heal " + report::argument_of(facts.container())) : std::nullopt;
}

std::optional<std::string> unit_command(const ContainerFacts& facts, const Nodes& nodes) {
  if (!facts.unit) {
    return std::nullopt;
  }
  std::string command = "systemctl set-property --runtime " + quoted_for_shell(*facts.container().unit);
  bool any = false;
  for (const NodeState* node : nodes) {
    if (!node->owed->device || facts.unit_table.allows({*node->owed->device, kReadWrite})) {
      continue;
    }
    const device::Device device = *node->owed->device;
    const device::Rule rule{
        {device.kind, device::Span{device.major, device.major}, device::Span{device.minor, device.minor}},
        kReadWrite,
        device::Match::within};
    if (const Result<std::string> value = to_device_allow(rule)) {
      command += " " + quoted_for_shell("DeviceAllow=" + *value);
      any = true;
    }
  }
  return any ? std::optional(command) : std::nullopt;
}

std::string setup_command(const ContainerFacts& facts) {
  return std::string("holdfast setup ") + (facts.container().engine == "cri-o" ? "crio" : "containerd");
}

bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node) {
  return node.device && facts.discovered->spec && facts.spec_table.allows({*node.device, kReadWrite});
}

bool is_moved_up(const container::Container& container) {
  const auto devices = container.v1.find("devices");
  return devices != container.v1.end() && devices->second != "/" && container.cgroup != "/" &&
         !container::is_within(devices->second, container.cgroup) &&
         container::is_within(container.cgroup, devices->second);
}

const device::DriverState* loaded_driver(const HostFacts& host) {
  const device::DriverState* driver = host.inventory.state_of("nvidia");
  return driver == nullptr || driver->version.empty() ? nullptr : driver;
}

bool is_about(const nvidia::LogEvent& event, const device::Unit& unit) {
  return !event.pci.empty() && unit.pci.starts_with(event.pci);
}

}  // namespace hf::doctor
