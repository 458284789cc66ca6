// RulesReport: what `holdfast rules`, `grant` and `revoke` print, as text and as JSON (docs/JSON.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/container/gate/change.h"
#include "core/container/gate/gate.h"
#include "core/device/compare.h"
#include "core/device/rule.h"

namespace hf::report {

// read: from the kernel's lists and programs. probe: tried device by device, so only for devices that this host has.
enum class Source : std::uint8_t { read, probe };

struct TargetRules {
  std::string target;
  std::vector<container::Gate> gates;
  container::Effective effective;
  Source source = Source::read;
};

struct HostRules {
  std::string layout;  // "v1", "v2", "hybrid"
  std::vector<container::Gate> gates;
  std::size_t hiding = 0;    // v1 cgroups that allow everything by default and may hide denied devices
  std::size_t too_deep = 0;  // cgroups that are nested too deep to be visited, with all below them
};

struct TargetDifference {
  std::string left;
  std::string right;
  device::Difference difference;
  std::string doubt;  // why it may not be the whole difference; "" where it is
};

struct AskedQuestion {
  std::string question;
  container::Answer answer;
};

enum class Outcome : std::uint8_t { planned, done, already, unproven, undone };

struct ChangeReport {
  std::string target;
  container::Change change;
  Outcome outcome = Outcome::planned;
  container::Plan plan;
  int attempts = 0;
  std::string detail;  // why it is unproven or undone
};

}  // namespace hf::report
