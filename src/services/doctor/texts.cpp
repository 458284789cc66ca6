#include "services/doctor/texts.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::doctor {
namespace {

using container::AccessFailure;
using container::NodeState;
using device::Access;
using report::Finding;
using report::Severity;

constexpr Access kReadWrite = Access::read | Access::write;

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

std::string quoted_for_shell(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./:@=+,") == std::string::npos;
  if (plain) {
    return argument;
  }
  std::string quoted = "'";
  for (const char character : argument) {
    quoted += character == '\'' ? "'\\''" : std::string(1, character);
  }
  return quoted + "'";
}

std::string shell_name_of(const container::Container& container) {
  return quoted_for_shell(container::unambiguous_name_of(container));
}

Finding finding_for(const ContainerFacts& facts, const char* code, Severity severity, std::string verdict) {
  const container::Container& it = facts.container();
  const std::string subject = title_of(it) + (it.shares_title ? " (" + short_id(it.id) + ")" : "");
  return {code, severity, subject, it.id.value, std::move(verdict), {}, {}};
}

std::string list_paths(const Nodes& nodes) {
  std::vector<std::string> paths;
  paths.reserve(nodes.size());
  for (const NodeState* node : nodes) {
    paths.push_back(node->owed->path);
  }
  return join(paths, ", ");
}

std::string grant_command(const ContainerFacts& facts, const Nodes& nodes) {
  std::string command = "holdfast grant " + shell_name_of(facts.container());
  for (const NodeState* node : nodes) {
    const Access access = node->owed->access & kReadWrite;
    if (node->owed->device) {
      command +=
          " '" + to_string(*node->owed->device) + " " + to_string(access == Access::none ? kReadWrite : access) + "'";
    }
  }
  return command;
}

std::string unit_command(const ContainerFacts& facts, const Nodes& nodes) {
  if (!facts.unit) {
    return {};
  }
  std::string command = "systemctl set-property --runtime " + quoted_for_shell(facts.container().scope);
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
  return any ? command : std::string();
}

bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node) {
  return node.device && facts.discovered->spec && facts.spec_table.allows({*node.device, kReadWrite});
}

}  // namespace hf::doctor
