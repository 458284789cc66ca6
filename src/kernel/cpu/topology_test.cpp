#include "kernel/cpu/topology.h"

#include <gtest/gtest.h>

#include <fstream>

#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

TEST(Topology, HasTheOnlineCpusOfThisHost) {
  const Result<Host> host = open_host();
  if (!host) {
    GTEST_SKIP() << host.error().message;
  }
  const Result<cpu::Topology> topology = read_topology(*host);
  ASSERT_TRUE(topology) << topology.error().message;
  const Result<std::string> online = read_text(host->root.get(), "sys/devices/system/cpu/online");
  ASSERT_TRUE(online);
  EXPECT_EQ(to_string(all_cpus(*topology)), to_string(*cpu::parse_cpu_set(*online)));
  for (const cpu::Cpu& cpu : topology->cpus) {
    const std::string directory = "sys/devices/system/cpu/cpu" + std::to_string(cpu.id) + "/";
    const Result<std::string> threads = read_text(host->root.get(), directory + "topology/thread_siblings_list");
    ASSERT_TRUE(threads);
    EXPECT_EQ(*cpu::parse_cpu_set(*threads)->begin(), cpu.core);
    EXPECT_TRUE(exists(host->root.get(), directory + "node" + std::to_string(cpu.numa.value)));
  }
}

TEST(Topology, ReadsASyntheticDescription) {
  const Result<cpu::Topology> topology = read_synthetic("pack:2 numa:2 l3:2 core:4 pu:2");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->counters, (cpu::Counters{.cpus = 64, .cores = 32, .sockets = 2, .numa_nodes = 4, .caches = 8}));
  EXPECT_EQ(topology->cpus[17], (cpu::Cpu{.id = 17, .core = 16, .socket = 0, .numa = {1}, .cache = 2}));
}

TEST(Topology, HasMemoryAndModel) {
  const Result<cpu::Topology> topology = read_synthetic("pack:2 [numa(memory=8GB)] core:2 pu:1");
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->memory.size(), 2U);
  EXPECT_EQ(topology->memory[1], (cpu::NodeMemory{.node = {1}, .bytes = 8'000'000'000}));
  EXPECT_EQ(topology->model, "");
}

TEST(Topology, TakesTheSocketForTheCacheWhereThereIsNone) {
  const Result<cpu::Topology> topology = read_synthetic("pack:2 core:2 pu:1");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->counters.caches, 2U);
  EXPECT_EQ(topology->cpus[3].cache, 1U);
}

TEST(Topology, ReadsTheXmlOfHwloc) {
  const char* xml = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" allowed_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" allowed_nodeset="0x00000001">
    <object type="NUMANode" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" local_memory="1024"/>
    <object type="Package" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001">
      <info name="CPUModel" value="EPYC 9 "/>
      <object type="Core" os_index="0" cpuset="0x00000005" complete_cpuset="0x00000005" nodeset="0x00000001" complete_nodeset="0x00000001">
        <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001"/>
        <object type="PU" os_index="2" cpuset="0x00000004" complete_cpuset="0x00000004" nodeset="0x00000001" complete_nodeset="0x00000001"/>
      </object>
      <object type="Core" os_index="1" cpuset="0x0000000a" complete_cpuset="0x0000000a" nodeset="0x00000001" complete_nodeset="0x00000001">
        <object type="PU" os_index="1" cpuset="0x00000002" complete_cpuset="0x00000002" nodeset="0x00000001" complete_nodeset="0x00000001"/>
        <object type="PU" os_index="3" cpuset="0x00000008" complete_cpuset="0x00000008" nodeset="0x00000001" complete_nodeset="0x00000001"/>
      </object>
    </object>
  </object>
</topology>
)";
  const Result<cpu::Topology> topology = read_hwloc_xml(xml);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->counters, (cpu::Counters{.cpus = 4, .cores = 2, .sockets = 1, .numa_nodes = 1, .caches = 1}));
  EXPECT_EQ(topology->cpus[3].core, 1U);
  EXPECT_EQ(topology->model, "EPYC 9");
  EXPECT_EQ(topology->memory, std::vector<cpu::NodeMemory>({{.node = {0}, .bytes = 1024}}));
}

TEST(Topology, RefusesInvalidDescriptions) {
  EXPECT_FALSE(read_synthetic("nonsense"));
  EXPECT_FALSE(read_synthetic(""));
  EXPECT_FALSE(read_synthetic("pack:100000 core:100000 pu:1"));
  EXPECT_FALSE(read_synthetic("pu:0x4000000"));
  EXPECT_FALSE(read_synthetic("pu:0"));
  EXPECT_TRUE(read_synthetic("pack:2 [numa(memory=1GB)] core:2 pu:2"));
  EXPECT_TRUE(read_synthetic("2 2 2"));
  EXPECT_FALSE(read_hwloc_xml("<topology>"));
  EXPECT_FALSE(read_hwloc_xml(""));
  // This one crashes hwloc itself.
  const Result<cpu::Topology> broken = read_hwloc_xml(
      R"(<topology version="2.0"><object type="Machine" os_index="0" cpuset="0xf" nodeset="0x1" complete_nodeset="0x1"></object></topology>)");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "topology: this XML is none that hwloc can read");
}

}  // namespace
}  // namespace hf::kernel
