// RulesReport: what `holdfast rules`, `grant` and `revoke` say, as text and as JSON (docs/JSON.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/container/change.h"
#include "core/container/gate.h"
#include "core/device/compare.h"
#include "core/device/rule.h"

namespace hf::report {

// read: from the kernel's own lists and code. probe: asked device by device, so only of devices this node has.
enum class Source : std::uint8_t { read, probe };

struct TargetRules {
  std::string target;
  std::vector<container::Gate> gates;
  container::Effective effective;
  Source source = Source::read;
};

struct NodeRules {
  std::string layout;  // "v1", "v2", "hybrid"
  std::vector<container::Gate> gates;
  std::size_t hiding = 0;    // v1 cgroups that allow all by default and may hide denies
  std::size_t too_deep = 0;  // cgroups that lie too deep to be looked at, with all below them
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
  std::string detail;  // why it is unproven or does not hold
};

std::string render_text(const std::vector<TargetRules>& targets);
std::string render_text(const NodeRules& node);
std::string render_text(const TargetDifference& difference);
std::string render_text(const container::Answer& answer);  // one line: allow, deny GATE, unknown WHY
std::string render_text(const ChangeReport& change);

std::string render_json(const std::vector<TargetRules>& targets);  // one object, or a list of them
std::string render_json(const NodeRules& node);
std::string render_json(const TargetDifference& difference);
std::string render_json(const std::string& target, const std::vector<AskedQuestion>& questions);
std::string render_json(const ChangeReport& change);

std::string render_json(const std::vector<container::Gate>& gates);  // a list, for documents that hold one
std::string render_time(std::int64_t seconds_since_1970);            // "2026-11-15T05:00:00Z"

}  // namespace hf::report
