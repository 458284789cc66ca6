// NodeReport: what `ps`, `doctor`, `explain` and `devices` say, as text and as JSON (docs/JSON.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/container.h"
#include "core/container/entitlement.h"
#include "core/container/gate.h"
#include "core/container/seat.h"
#include "core/container/shield.h"
#include "core/device/inventory.h"
#include "core/report/finding.h"

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
std::string render_text(const ContainerList& list, Width width);
std::string render_json(const ContainerList& list);

struct DoctorReport {
  std::vector<Finding> findings;  // the worst first
  std::map<std::string, int> states;
  int containers = 0;
  struct Shielded {
    std::string container;
    container::ShieldCover cover;
  };
  std::vector<Shielded> shields;  // of containers that are owed something
  std::string guard;              // whether holdfastd runs here, and by which means it hears of changes
  std::vector<std::string> notes;
};
std::string render_text(const DoctorReport& report);
std::string render_json(const DoctorReport& report);
std::string summary_line(const DoctorReport& report);

// Everything about one container.
struct Explanation {
  ContainerLine line;
  std::int64_t now = 0;
  std::vector<container::Claim> claims;  // believed and refused
  std::vector<container::NodeState> nodes;
  std::vector<container::Gate> gates;
  std::string gates_problem;
  std::string unit;                      // systemd's, with what it would put in force
  std::vector<std::string> unit_allows;  // in systemd's words
  std::vector<std::string> strangers;    // nodes in the container that it is not owed
  std::vector<Finding> findings;
};
std::string render_text(const Explanation& explanation);
std::string render_json(const Explanation& explanation);

// Nodes that were made anew in a container, or would be.
struct MendReport {
  struct Node {
    std::string path;
    device::Device device;
    std::string why;
  };

  std::string container;
  std::vector<Node> nodes;
  bool is_done = false;
};
std::string render_text(const MendReport& report);
std::string render_json(const MendReport& report);

struct DeviceList {
  device::Inventory inventory;
  std::map<std::string, std::vector<std::string>> entitled;  // containers by path of the node
  std::map<std::string, std::vector<std::string>> holders;   // processes by path of the node
};
std::string render_text(const DeviceList& list);
std::string render_json(const DeviceList& list);

// The same tree in YAML, every text in quotes.
std::string json_to_yaml(const std::string& json);

std::string render_age(std::int64_t seconds);  // "3d", "5h", "12m", "40s"

}  // namespace hf::report
