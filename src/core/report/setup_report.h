// SetupReport: what `holdfast setup` found and did, as text and as JSON (docs/JSON.md).
#pragma once

#include <string>
#include <vector>

namespace hf::report {

struct SetupReport {
  struct File {
    std::string path;
    std::string diff;
  };

  std::string subject;  // "docker", "node"
  std::string verdict;
  std::vector<File> files;
  std::vector<std::string> steps;   // that were done, or would be
  std::vector<std::string> failed;  // steps that could not be done, and why
  std::vector<std::string> notes;
  std::string command;   // that makes it count; "" where none is needed
  bool is_done = false;  // or only planned

  [[nodiscard]] bool changes_nothing() const { return steps.empty() && failed.empty(); }
};

std::string render_text(const SetupReport& report);
std::string render_json(const SetupReport& report);

}  // namespace hf::report
