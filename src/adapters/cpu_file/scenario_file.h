// ScenarioFile: what `holdfast cpu simulate` is told: a machine, the policy's options, and who comes and goes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/simulate.h"

namespace hf::cpu_file {

struct ScenarioFile {
  cpu::Scenario scenario;          // its topology counts only where there is no word for one
  std::string machine_word;        // a file, synthetic:…, or the name of a machine; "": it stands in the file itself
  std::vector<std::string> notes;  // about words in it that mean nothing
};

Result<ScenarioFile> parse_scenario(std::string_view text);

}  // namespace hf::cpu_file
