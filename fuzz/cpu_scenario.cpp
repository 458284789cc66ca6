// Scenarios: read or refused with words; whatever comes and goes, every CPU has one owner and none is reserved.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/cpu_file/scenario_file.h"
#include "check.h"
#include "core/cpu/machine.h"
#include "core/report/cpu_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<cpu_file::ScenarioFile> file = cpu_file::parse_scenario(text);
  if (!file) {
    check(!file.error().message.empty(), "an error has words");
    return 0;
  }
  if (!file->machine_word.empty()) {
    file->scenario.topology = *cpu::find_machine("workstation");
  }
  const Result<cpu::Simulation> simulation = simulate(file->scenario);
  if (!simulation) {
    check(!simulation.error().message.empty(), "an error has words");
    return 0;
  }
  check(simulation->steps.size() == file->scenario.steps.size(), "every step has its answer");
  check(!given_cpus(simulation->state).overlaps(simulation->reserved), "reserved CPUs are nobody's own");
  check(!given_cpus(simulation->state).overlaps(simulation->state.shared), "what is owned is not shared");
  check(!report::render_text(*simulation).empty() && !report::render_json(*simulation).empty(), "it can be shown");
  return 0;
}
