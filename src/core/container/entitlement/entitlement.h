// Entitlement: the devices a container is owed, and by which evidence. docs/SECURITY.md explains the rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_class.h"
#include "core/device/inventory.h"
#include "core/device/rule.h"

namespace hf::container {

// ledger:      what holdfast-runtime added to the container.
// kubelet:     kubelet's checkpoint of what device plugins allocated; dra: its record of resource claims.
// oci:         the devices and rules of the bundle's config.json.
// cdi:         names of CDI devices in the bundle's annotations.
// nvidia_hook: NVIDIA's hook in the bundle, with the request in the environment.
// environment: such a request without any hook that would act on it.
enum class Source : std::uint8_t { ledger, kubelet, dra, oci, cdi, nvidia_hook, environment };
std::string to_string(Source source);

class SourceSet {
 public:
  SourceSet(std::initializer_list<Source> sources = {}) {
    std::ranges::for_each(sources, [this](Source one) { insert(one); });
  }
  void insert(Source source) { bits_ = std::uint8_t(bits_ | bit_of(source)); }
  [[nodiscard]] bool contains(Source source) const { return (bits_ & bit_of(source)) != 0; }

 private:
  static std::uint8_t bit_of(Source source) { return std::uint8_t(1U << unsigned(source)); }

  std::uint8_t bits_ = 0;
};

// Owner and mode of a device node that has to be created.
struct Permissions {
  std::uint32_t mode = 0666;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  friend bool operator==(const Permissions&, const Permissions&) = default;
};

struct WantedNode {
  std::string path;                       // in the container
  std::optional<device::Device> claimed;  // the device numbers in the evidence; they may be stale
  device::Access access = device::Access::read | device::Access::write;
  std::optional<Permissions> permissions = std::nullopt;  // as in the evidence
};

struct Claim {
  Source source = Source::oci;
  std::string where;  // the file it was read from
  std::vector<WantedNode> nodes;
  device::RuleSet rules;                // access without a device node
  std::vector<std::string> not_wanted;  // device nodes of the complete set that this request excludes
  bool is_about_pod = false;            // about the whole pod: it supports requests, but grants nothing by itself
  std::string refused;                  // why it is not trusted; "" where it is
};

std::vector<std::string> paths_of(const Claim& claim);

// The facts about a container that decide which claims are trusted.
struct Standing {
  bool in_pod = false;
  bool allocations_known = false;  // kubelet's checkpoint, or its record of resource claims, was read
  std::string inside;              // the container around it, "" where there is none
  std::string vouched_by = {};     // the rule of the config that trusts its own requests, "" where there is none
};

// Sets `refused` of the claims that are not trusted. In a pod, only what kubelet allocated counts: an image may set any
// environment and a pod any annotation. Outside pods, engines put the device nodes of a CDI device into the bundle, and
// its name alone proves nothing.
std::vector<Claim> weigh(std::vector<Claim> claims, const Standing& standing);

struct OwedNode {
  std::string path;
  std::string device_class;  // "" for a device of no class
  device::Part part = device::Part::unit;
  std::optional<device::Device> device;   // with the current device numbers; absent: its driver is not loaded
  std::optional<device::Device> claimed;  // as in the evidence
  device::Access access = device::Access::none;
  std::vector<std::string> because;
  SourceSet sources;           // of the claims that name it
  bool is_completion = false;  // no evidence names it, but a claimed device does not work without it
  bool is_rule_only = false;   // only access is owed, not the device node
  Permissions permissions;     // of the device node

  [[nodiscard]] bool is_stale() const { return claimed && device && *claimed != *device; }
};

// The request to check: the owed one of read and write, or both where neither is owed, for the current device numbers.
device::Request request_for(const OwedNode& node);

struct Entitlement {
  std::vector<OwedNode> nodes;
  std::vector<Claim> refused;

  [[nodiscard]] bool owes_nothing() const { return nodes.empty(); }
  [[nodiscard]] const OwedNode* find(const std::string& path) const;
};

// Merges all trusted claims, adds the device nodes that each GPU needs, and resolves the current device numbers.
Entitlement entitle(const std::vector<Claim>& claims, const device::Inventory& inventory,
                    const device::DeviceClasses& classes);

// "nvidia: 0,1" and the like, for a table.
std::string summary_of(const Entitlement& entitlement);

}  // namespace hf::container
