// Topology files: parsed or refused with a message; CPUs can be allocated on any machine they describe.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/cpu_file/topology_file.h"
#include "check.h"
#include "core/cpu/policy.h"
#include "core/report/cpu_report.h"
#include "render/cpu.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<cpu::Topology> topology = cpu_file::parse_topology(text);
  if (!topology) {
    check(!topology.error().message.empty(), "an error has a message");
    return 0;
  }
  const cpu::Layout layout(*topology);
  const std::uint32_t half = (std::uint32_t(topology->cpus.size()) + 1) / 2;
  for (const bool full_cores : {false, true}) {
    for (const bool across : {false, true}) {
      cpu::Options options;
      options.full_cores = full_cores;
      options.across_numa = across;
      const Result<cpu::Policy> policy = make_policy(layout, options, {}, std::nullopt);
      check(policy.has_value(), "a policy can be made");
      const Result<cpu::CpuSet> cpus = choose(*policy, layout.cpus, half, {});
      check(full_cores || cpus, "half of the machine can be allocated");
      if (cpus) {
        check(cpus->count() == half && layout.cpus.contains(*cpus), "as many as were asked for, of the machine");
        check(!full_cores || whole_cores_in(layout, *cpus) == *cpus, "no core is split");
      }
    }
  }
  const report::CpuMap map{.source = "fuzz", .topology = *topology, .state = {}};
  const Result<cpu::Topology> again = cpu_file::parse_topology(render_json(map));
  check(!render_text(map).empty() && !render_svg(map).empty(), "it can be drawn");
  check(again && again->cpus == topology->cpus && again->counters == topology->counters,
        "a round trip changes nothing");
  return 0;
}
