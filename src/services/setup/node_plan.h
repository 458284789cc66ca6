// NodePlan: what is missing or wrong under a host's /dev, and the steps that put it right.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/container/entitlement.h"
#include "core/device/inventory.h"

namespace hf::setup {

struct NodeFacts {
  device::Inventory inventory;
  std::map<std::string, std::string> params;  // of NVIDIA's driver
  std::map<std::string, std::string> links;   // paths under /dev/char and /dev/block, and what they say
};

struct NodeStep {
  enum class Kind : std::uint8_t { make_node, correct_node, make_link, correct_link, remove_link };

  Kind kind = Kind::make_node;
  std::string path;
  device::Device device;
  container::Permissions permissions;  // of a node
  std::string target;                  // of a link
  std::string why;
};

// Nodes first, then the links to them: runc and systemd find a device by its link in /dev/char.
std::vector<NodeStep> plan_nodes(const NodeFacts& facts);
std::string to_string(const NodeStep& step);

}  // namespace hf::setup
