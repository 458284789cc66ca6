#include "services/setup/host_plan.h"

#include <set>

#include "core/base/text.h"

namespace hf::setup {
namespace {

using Kind = HostStep::Kind;

template <class Number>
Number param_of(const HostDeviceFacts& facts, const std::string& name, Number fallback) {
  const auto param = facts.params.find(name);
  return param == facts.params.end() ? fallback : parse_number<Number>(param->second).value_or(fallback);
}

// The driver's parameters state mode and owner of its nodes in decimal.
container::Permissions permissions_for(const HostDeviceFacts& facts, const device::Node& node) {
  if (node.live) {
    return {node.mode, node.uid, node.gid};
  }
  constexpr std::uint32_t kAllUsers = 0666;
  constexpr std::uint32_t kRootOnly = 0600;  // the kernel's default; udev sets the final mode
  if (node.device_class != "nvidia") {
    return {kRootOnly, 0, 0};
  }
  return {param_of(facts, "DeviceFileMode", kAllUsers), param_of<std::uint32_t>(facts, "DeviceFileUID", 0),
          param_of<std::uint32_t>(facts, "DeviceFileGID", 0)};
}

std::string link_of(const device::Device& device) {
  return std::string(device.kind == device::Kind::block ? "/dev/block/" : "/dev/char/") + std::to_string(device.major) +
         ":" + std::to_string(device.minor);
}

std::string relative_target(const std::string& path) { return "../" + path.substr(std::string("/dev/").size()); }

// "../nvidia0" and "/dev/nvidia0" are the same target.
std::string path_in_link(const std::string& target) {
  return target.starts_with("../") ? "/dev/" + target.substr(3) : target;
}

void add_node(std::vector<HostStep>& steps, const HostDeviceFacts& facts, const device::Node& node) {
  if (!node.expected || (node.live && !node.is_stale())) {
    return;
  }
  const std::string why = node.live ? "it has " + to_string(*node.live) : "it is missing";
  steps.push_back({node.live ? Kind::correct_node : Kind::create_node, node.path, *node.expected,
                   permissions_for(facts, node), "", why});
}

void add_link(std::vector<HostStep>& steps, const HostDeviceFacts& facts, const device::Node& node) {
  const device::Device numbers = *node.numbers();
  const std::string path = link_of(numbers);
  const auto link = facts.links.find(path);
  if (link == facts.links.end()) {
    steps.push_back({Kind::create_link, path, numbers, {}, relative_target(node.path), "it is missing"});
    return;
  }
  const std::string target = path_in_link(link->second);
  const device::Node* other = facts.inventory.find(target);
  const bool is_right = target == node.path || (other != nullptr && other->numbers() == numbers);
  if (!is_right) {
    const std::string why = link->second.empty() ? "something else is in its place" : "it leads to " + link->second;
    steps.push_back({Kind::correct_link, path, numbers, {}, relative_target(node.path), why});
  }
}

// Removes links that are named after stale numbers.
void remove_stale_links(std::vector<HostStep>& steps, const HostDeviceFacts& facts,
                        const std::set<std::string>& wanted) {
  for (const auto& [path, target] : facts.links) {
    const device::Node* node = facts.inventory.find(path_in_link(target));
    if (node != nullptr && node->numbers() && !wanted.contains(path)) {
      steps.push_back({Kind::remove_link,
                       path,
                       *node->numbers(),
                       {},
                       target,
                       node->path + " has " + to_string(*node->numbers()) + " now"});
    }
  }
}

}  // namespace

std::vector<HostStep> plan_nodes(const HostDeviceFacts& facts) {
  std::vector<HostStep> steps;
  for (const device::Node& node : facts.inventory.nodes) {
    add_node(steps, facts, node);
  }
  std::set<std::string> wanted;
  for (const device::Node& node : facts.inventory.nodes) {
    const bool is_first = node.numbers() && wanted.insert(link_of(*node.numbers())).second;
    if (is_first && node.path.starts_with("/dev/")) {
      add_link(steps, facts, node);
    }
  }
  remove_stale_links(steps, facts, wanted);
  return steps;
}

std::string to_string(const HostStep& step) {
  switch (step.kind) {
    case Kind::create_node: return "create " + step.path + " as " + to_string(step.device);
    case Kind::correct_node: return "recreate " + step.path + " as " + to_string(step.device) + ": " + step.why;
    case Kind::create_link: return "link " + step.path + " to " + step.target;
    case Kind::correct_link: return "link " + step.path + " to " + step.target + ": " + step.why;
    case Kind::remove_link: return "remove the link " + step.path + ": " + step.why;
  }
  return step.path;
}

}  // namespace hf::setup
