// HostPlan: what is missing or wrong under the host's /dev, and the steps that correct it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/container/entitlement/entitlement.h"
#include "core/device/inventory.h"

namespace hf::setup {

struct HostDeviceFacts {
  device::Inventory inventory;
  std::map<std::string, std::string> params;  // parameters of NVIDIA's driver
  std::map<std::string, std::string> links;   // targets of the symlinks under /dev/char and /dev/block, by path
};

struct HostStep {
  enum class Kind : std::uint8_t { create_node, correct_node, create_link, correct_link, remove_link };

  Kind kind = Kind::create_node;
  std::string path;
  device::Device device;
  container::Permissions permissions;  // of a node
  std::string target;                  // of a link
  std::string why;
};

// Nodes come first, then the links to them: runc and systemd find a device by its link in /dev/char.
std::vector<HostStep> plan_nodes(const HostDeviceFacts& facts);
std::string to_string(const HostStep& step);

}  // namespace hf::setup
