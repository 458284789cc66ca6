// Question: what is asked of the nodes of a cluster, and the commands of kubectl that ask it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/fleet.h"

namespace hf::fleet {

using report::PodName;
// "name" or "namespace/name"; `name_space`: of the first form.
Result<PodName> parse_pod_name(const std::string& text, const std::string& name_space);

struct Inquiry {
  report::Question question = report::Question::doctor;
  std::vector<std::string> kubectl;  // its path, and the options that say which cluster
  std::string selector = "app.kubernetes.io/name=holdfast";
  std::string container = "guard";
  std::string name_space;            // of holdfast's pods; "": all
  std::vector<std::string> nodes;    // none: all that have a pod of holdfast
  std::optional<PodName> pod;        // only what is about this pod, on its node
  std::vector<std::string> options;  // more options of the command on the nodes
};

std::vector<std::string> list_command(const Inquiry& inquiry);
std::vector<std::string> pod_command(const Inquiry& inquiry);
std::vector<std::string> exec_command(const Inquiry& inquiry, const report::FleetMember& member);

}  // namespace hf::fleet
