// Scenarios: parsed or refused with a message; after any steps every CPU has one owner at most, and none is reserved.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/cpu_file/scenario_file.h"
#include "check.h"
#include "core/cpu/machine.h"
#include "core/report/cpu_report.h"
#include "render/cpu.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<cpu_file::ScenarioFile> file = cpu_file::parse_scenario(text);
  if (!file) {
    check(!file.error().message.empty(), "an error has a message");
    return 0;
  }
  if (!file->machine_source.empty()) {
    file->scenario.topology = *cpu::find_machine("workstation");
  }
  const Result<cpu::Simulation> simulation = simulate(file->scenario);
  if (!simulation) {
    check(!simulation.error().message.empty(), "an error has a message");
    return 0;
  }
  check(simulation->steps.size() == file->scenario.steps.size(), "every step has a result");
  check(!given_cpus(simulation->state).overlaps(simulation->reserved), "reserved CPUs have no owner");
  check(!given_cpus(simulation->state).overlaps(simulation->state.shared), "what is owned is not shared");
  check(!report::render_text(*simulation).empty() && !report::render_json(*simulation).empty(), "it can be shown");
  return 0;
}
