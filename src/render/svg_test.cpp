#include "render/svg.h"

#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "render/cpu.h"

namespace hf::report {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

CpuMap small_machine() {
  CpuMap map;
  map.source = "this machine";
  map.topology = cpu::build({.sockets = 2, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 2});
  map.topology.model = "EPYC <9>";
  map.topology.memory = {{{0}, std::uint64_t(4) << 30U}, {{1}, std::uint64_t(2) << 30U}};
  map.topology.distances = {{{0}, {0}, 10}, {{0}, {1}, 32}, {{1}, {0}, 32}, {{1}, {1}, 10}};
  map.topology.devices = {{"/dev/nvidia0", cpu::NumaId{1}}, {"/dev/nvidia1", std::nullopt}};
  map.state.emplace();
  map.state->shared = *cpu::parse_cpu_set("1-3");
  map.state->entries[{"7d5c-uid", "main"}] = *cpu::parse_cpu_set("0");
  return map;
}

TEST(OwnerColour, HasReadableTextOnIt) {
  for (std::size_t owner = 0; owner < 500; ++owner) {
    const Colour ground = owner_colour(owner);
    EXPECT_GE(contrast(ground, text_colour_on(ground)), 4.5) << owner << " " << to_string(ground);
  }
  EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 0.01);
  EXPECT_EQ(to_string(Colour{0, 16, 255}), "#0010ff");
}

TEST(CpuPicture, HasAViewBoxAndATitle) {
  const std::string svg = render_svg(small_machine());
  EXPECT_TRUE(has(svg, "viewBox=\"0 0 ")) << svg;
  EXPECT_TRUE(has(svg, "<title>The CPUs of this machine</title>")) << svg;
}

TEST(CpuPicture, ShowsDevicesAtTheirNumaNode) {
  const std::string svg = render_svg(small_machine());
  EXPECT_TRUE(has(svg, "<title>device /dev/nvidia0 on NUMA node 1</title>")) << svg;
  EXPECT_TRUE(has(svg, ">nvidia0</text>")) << svg;
  EXPECT_LT(svg.find(">NUMA node 1"), svg.find(">nvidia0<"));
  EXPECT_LT(svg.find("on no known NUMA node<"), svg.find(">nvidia1<"));
}

TEST(CpuPicture, ShowsModelMemoryAndDistances) {
  const std::string svg = render_svg(small_machine());
  EXPECT_TRUE(has(svg, "this machine · 2 × EPYC &lt;9&gt; · 6 GiB</text>")) << svg;
  EXPECT_TRUE(has(svg, ">NUMA node 1 · 2 GiB</text>")) << svg;
  EXPECT_TRUE(has(svg, "CPUs 2-3, distances to 0: 32, 1: 10</title>")) << svg;
  EXPECT_TRUE(has(svg, ">32</text>")) << svg;
}

TEST(CpuPicture, NamesPodsByTheirNames) {
  CpuMap map = small_machine();
  EXPECT_TRUE(has(render_svg(map), "<title>CPU 0, 7d5c-uid/main</title>"));
  map.pod_names["7d5c-uid"] = "ml/train-0";
  const std::string svg = render_svg(map);
  EXPECT_TRUE(has(svg, "<title>CPU 0, ml/train-0/main</title>")) << svg;
  EXPECT_TRUE(has(svg, "<title>pod 7d5c-uid</title>")) << svg;
  EXPECT_TRUE(has(svg, ">ml/train-0/main: 0</text>")) << svg;
}

TEST(CpuMapJson, HasModelAndMemory) {
  const std::string json = render_json(small_machine());
  EXPECT_TRUE(has(json, "\"model\": \"EPYC <9>\"")) << json;
  EXPECT_TRUE(has(json, "4294967296")) << json;
}

}  // namespace
}  // namespace hf::report
