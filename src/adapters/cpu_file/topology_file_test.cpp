#include "adapters/cpu_file/topology_file.h"

#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "core/report/cpu_report.h"
#include "render/cpu.h"

namespace hf::cpu_file {
namespace {

TEST(TopologyFile, HonoursTheCountersItGives) {
  const Result<cpu::Topology> topology =
      parse_topology(R"({"cpus":[[0,0,0,0,0],[1,1,0,0,0]],"num_cores":1,"num_uncore_cache":0})");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->counters, (cpu::Counters{.cpus = 2, .cores = 1, .sockets = 1, .numa_nodes = 1, .caches = 0}));
}

TEST(TopologyFile, ParsesWhatTheMapWrites) {
  for (const cpu::KnownMachine& known : cpu::known_machines()) {
    cpu::Topology topology = *cpu::find_machine(known.name);
    topology.isolated.add(1);
    topology.efficient.add(2);
    topology.model = "AMD EPYC 7742";
    topology.memory = {{{0}, std::uint64_t(540) << 30U}};
    topology.offline.add(topology.cpus.back().id + 1);
    const Result<cpu::Topology> again = parse_topology(render_json(report::CpuMap{known.name, topology, {}}));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, topology) << known.name;
  }
}

TEST(TopologyFile, MayLeaveOutCpusItDeclares) {
  EXPECT_TRUE(parse_topology(R"({"cpus":[[0,0,0,0,0],[2,2,0,0,0]],"offline":"1"})"));
  EXPECT_TRUE(parse_topology(R"({"cpus":[[0,0,0,0,0],[2,2,0,0,0]],"num_cpus":2})"));
}

TEST(TopologyFile, IsRefusedWithTheNameOfTheFaultyPart) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "line 1, column 1: this is no JSON"},
      {"{\n  \"cpus\": [1,\n}", "topology: line 3, column 1: this is no JSON"},
      {std::string(400'000, '['), "nested too deep"},
      {R"({"cpus":[[0,0,0,0,0]],"memory":[[0,"much"]]})", "memory: want [node, bytes]"},
      {"[]", "no JSON object"},
      {"{}", "no list cpus"},
      {R"({"cpus":[]})", "no CPU"},
      {R"({"cpus":[[0,0,0,0,0],[0,0,0,0,0]]})", "CPU 0 is there twice"},
      {R"({"cpus":[[0,0,0,0,0],[2,2,0,0,0]]})", "CPU 1 is missing"},
      {R"({"cpus":[[0,0,0,0,0],[2,2,0,0,0]],"num_cpus":3})", "CPU 1 is missing"},
      {R"({"cpus":[[0,0,0]]})", "row 1 of cpus"},
      {R"({"cpus":[[0,0,0,0,-1]]})", "row 1 of cpus"},
      {R"({"cpus":[[0,0,0,0,1.5]]})", "row 1 of cpus"},
      {R"({"cpus":[[9999,0,0,0,0]]})", "CPU 9999 is above 8191"},
      {R"({"cpus":[[0,0,0,0,0]],"num_cpus":"many"})", "num_cpus"},
      {R"({"cpus":[[0,0,0,0,0]],"offline":"0"})", "CPU 0 is among cpus and among offline"},
      {R"({"cpus":[[0,0,0,0,0]],"isolated":"3-1"})", "3-1"},
      {R"({"cpus":[[0,0,0,0,0]],"devices":[{"numa":0}]})", "devices"},
      {R"({"cpus":[[0,0,0,0,0]],"distances":[[0,0]]})", "distances"},
  };
  for (const auto& [text, message] : table) {
    const Result<cpu::Topology> topology = parse_topology(text);
    ASSERT_FALSE(topology) << text;
    EXPECT_NE(topology.error().message.find(message), std::string::npos) << topology.error().message;
    EXPECT_EQ(topology.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace hf::cpu_file
