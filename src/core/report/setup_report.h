// SetupReport: what `holdfast setup` found and did.
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
  std::vector<std::string> steps;   // done, or planned
  std::vector<std::string> failed;  // steps that could not be done, and why
  std::vector<std::string> notes;
  std::string command;   // the command that puts it into effect; "" where none is needed
  std::string manifest;  // for Kubernetes, to be applied once for the cluster; "": none
  bool is_done = false;  // false: only planned

  [[nodiscard]] bool changes_nothing() const { return steps.empty() && failed.empty(); }
};

}  // namespace hf::report
