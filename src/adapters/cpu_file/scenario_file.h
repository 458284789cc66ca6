// ScenarioFile: the input of `holdfast cpu simulate`: a machine, the policy's options, and containers that come and go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/simulate.h"

namespace hf::cpu_file {

struct ScenarioFile {
  cpu::Scenario scenario;          // its topology is unset if machine_source is not empty
  std::string machine_source;      // a file, synthetic:…, or the name of a machine; "": it is in the scenario itself
  std::vector<std::string> notes;  // about unknown fields, which are ignored
};

Result<ScenarioFile> parse_scenario(std::string_view text);

}  // namespace hf::cpu_file
