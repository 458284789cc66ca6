// Verdict: what the findings and the states of the containers mean for the host, in one headline. The web page, the
// JSON and the metrics show this one, so that none of them can say that all is fine while another reports a problem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/report/snapshot.h"

namespace hf::report {

enum class Level : std::uint8_t { good, warning, critical };
std::string to_string(Level level);

struct Verdict {
  Level level = Level::good;
  std::string headline;           // "train lost the right to open /dev/nvidia0"
  std::string because;            // "its device rules were rewritten by systemd"; "" where it is not known
  std::string code;               // of the finding behind it; "" where there is none
  std::string container;          // the id of the container that it names; "" where it names none
  std::vector<std::string> cure;  // as in the finding
  bool needs_all_cures = false;   // as in the finding
  std::string rest;               // what else there is: "2 more containers lack something, 3 fine"
};
Verdict verdict_of(const Snapshot& snapshot);

// The state that the nodes of a container show, or a worse one where a finding says that it cannot work.
container::State state_with(container::State by_nodes, const std::vector<const Finding*>& findings);
bool lacks_something(container::State state);

// The container as an argument of commands: "train", "'a name'".
std::string argument_of(const container::Container& container);

}  // namespace hf::report
