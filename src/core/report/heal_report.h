// HealReport: what `holdfast heal` found and did, as text and as JSON (docs/JSON.md).
#pragma once

#include <string>
#include <vector>

namespace hf::report {

struct HealReport {
  struct Line {
    std::string id;
    std::string container;
    std::vector<std::string> lost;           // owed device nodes that the rules refused
    std::vector<std::string> steps;          // done, or planned
    std::vector<std::string> left;           // owed device nodes that it cannot use afterwards
    std::vector<std::string> why_left = {};  // the reason for each of them
    std::string error;

    [[nodiscard]] bool is_well() const { return left.empty() && error.empty(); }
  };

  std::vector<Line> lines;
  std::vector<std::string> not_owed;  // containers that were named and are owed no device
  bool is_done = false;               // false: only planned

  [[nodiscard]] bool is_all_well() const;  // nothing is left that it cannot use
};

}  // namespace hf::report
