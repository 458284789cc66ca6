// HealReport: what `holdfast heal` found and did, as text and as JSON (docs/JSON.md).
#pragma once

#include <string>
#include <vector>

namespace hf::report {

struct HealReport {
  struct Line {
    std::string id;
    std::string container;
    std::vector<std::string> lost;   // owed device nodes that the rules refused
    std::vector<std::string> steps;  // done, or planned
    std::vector<std::string> left;   // device nodes that are still refused
    std::string error;

    [[nodiscard]] bool is_well() const { return left.empty() && error.empty(); }
  };

  std::vector<Line> lines;
  std::vector<std::string> not_owed;  // containers that were named and are owed no device
  bool is_done = false;               // false: only planned

  [[nodiscard]] bool is_all_well() const;  // nothing is left refused
};

}  // namespace hf::report
