// HostReport: what `ps`, `doctor`, `explain` and `devices` print.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/container.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/entitlement/node_state.h"
#include "core/container/gate/gate.h"
#include "core/container/guard/shield.h"
#include "core/device/inventory.h"
#include "core/report/finding.h"
#include "core/resource/offer.h"

namespace hf::report {

// One container in a list.
struct ContainerLine {
  container::Container container;
  container::Entitlement entitlement;
  container::State state = container::State::not_owed;
  std::vector<std::string> codes;  // of its findings
  container::ShieldCover shield;
};

struct ContainerList {
  std::vector<ContainerLine> lines;
  std::int64_t now = 0;
  std::vector<std::string> notes;
};

enum class Width : std::uint8_t { normal, wide };

struct DoctorReport {
  std::vector<Finding> findings;  // the worst first
  std::map<std::string, int> states;
  int containers = 0;
  struct Shielded {
    std::string container;
    container::ShieldCover cover;
  };
  std::vector<Shielded> shields;  // of containers that are owed something
  std::string guard;              // whether holdfastd runs here, and how it detects changes
  std::vector<std::string> notes;
};

// Everything about one container.
struct Explanation {
  ContainerLine line;
  std::int64_t now = 0;
  std::vector<container::Claim> claims;  // trusted and refused
  std::vector<container::NodeState> nodes;
  std::vector<container::Gate> gates;
  std::string gates_problem;
  std::string unit;                      // the systemd unit, with the rules it would apply
  std::vector<std::string> unit_allows;  // in systemd's syntax
  std::vector<std::string> not_owed;     // device nodes in the container that it is not owed
  std::vector<Finding> findings;
};

struct DeviceList {
  device::Inventory inventory;
  std::map<std::string, std::vector<std::string>> entitled;  // containers, by path of the device node
  std::map<std::string, std::vector<std::string>> holders;   // processes, by path of the device node
  std::vector<resource::OfferStatus> offers;                 // to kubelet, while holdfast-kube runs
};

}  // namespace hf::report
