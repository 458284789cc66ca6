// Entitlement: what a container may have, and by which evidence. docs/SECURITY.md has the rules in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_class.h"
#include "core/device/inventory.h"
#include "core/device/rule.h"

namespace hf::container {

// ledger:      what holdfast-runtime gave.
// kubelet:     kubelet's checkpoint of what device plugins allocated; dra: the same of resource claims.
// oci:         the devices and rules of the bundle's config.json.
// cdi:         names of CDI devices in the bundle's annotations.
// nvidia_hook: NVIDIA's hook in the bundle, with the request in the environment.
// environment: such a request without any hook that would carry it out.
enum class Source : std::uint8_t { ledger, kubelet, dra, oci, cdi, nvidia_hook, environment };
std::string to_string(Source source);

// How a node is to be made where it is missing.
struct Permissions {
  std::uint32_t mode = 0666;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  friend bool operator==(const Permissions&, const Permissions&) = default;
};

struct WantedNode {
  std::string path;                       // in the container
  std::optional<device::Device> claimed;  // the numbers the evidence has; they may have moved since
  device::Access access = device::Access::read | device::Access::write;
  std::optional<Permissions> permissions = std::nullopt;  // as the evidence has them
};

struct Claim {
  Source source = Source::oci;
  std::string where;  // the file it was read from
  std::vector<WantedNode> nodes;
  device::RuleSet rules;                // access without a node
  std::vector<std::string> not_wanted;  // nodes of the whole set this request does without
  bool is_about_pod = false;            // of the pod as a whole: it vouches for requests, but gives nothing by itself
  std::string refused;                  // why it is not believed; "" where it is
};

std::vector<std::string> paths_of(const Claim& claim);

// Who the claims are about, as far as it matters for believing them.
struct Standing {
  bool in_pod = false;
  bool allocations_known = false;  // kubelet's checkpoint, or its record of resource claims, was read
  std::string inside;              // the container around it, "" where there is none
};

// Marks what is not to be believed. In a pod, only what kubelet allocated counts: an image may set any environment and
// a pod any annotation. Elsewhere engines put the nodes of a CDI device into the bundle, and its name alone says
// nothing.
std::vector<Claim> weigh(std::vector<Claim> claims, const Standing& standing);

struct OwedNode {
  std::string path;
  std::string device_class;  // "" for a device of no class
  device::Part part = device::Part::unit;
  std::optional<device::Device> device;   // with the numbers of today; absent: its driver is not there
  std::optional<device::Device> claimed;  // as the evidence has it
  device::Access access = device::Access::none;
  std::vector<std::string> because;
  bool is_completion = false;  // no evidence names it, but the device does not work without it
  bool is_rule_only = false;   // access was given, no node promised
  Permissions permissions;     // of the node

  [[nodiscard]] bool is_stale() const { return claimed && device && *claimed != *device; }
};

// Reading and writing, or the letters that are owed, of the device it has today.
device::Request request_for(const OwedNode& node);

struct Entitlement {
  std::vector<OwedNode> nodes;
  std::vector<Claim> refused;

  [[nodiscard]] bool owes_nothing() const { return nodes.empty(); }
  [[nodiscard]] const OwedNode* find(const std::string& path) const;
};

// All believed claims together, each GPU made a whole set, with the numbers of today.
Entitlement entitle(const std::vector<Claim>& claims, const device::Inventory& inventory,
                    const device::DeviceClasses& classes);

// "nvidia: 0,1" and the like, for a table.
std::string summary_of(const Entitlement& entitlement);

}  // namespace hf::container
