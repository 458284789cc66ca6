// HealReport: what `holdfast heal` found and did, as text and as JSON (docs/JSON.md).
#pragma once

#include <string>
#include <vector>

namespace hf::report {

struct HealReport {
  struct Line {
    std::string id;
    std::string container;
    std::vector<std::string> lost;   // owed nodes that the rules refused
    std::vector<std::string> steps;  // that were done, or would be
    std::vector<std::string> left;   // nodes that are refused still
    std::string error;
  };

  std::vector<Line> lines;
  bool is_done = false;  // or only planned

  [[nodiscard]] bool is_all_well() const;  // nothing is left, or would be
};

std::string render_text(const HealReport& report);
std::string render_json(const HealReport& report);

}  // namespace hf::report
