#include "core/report/fleet_member.h"

#include <gtest/gtest.h>

namespace hf::report {
namespace {

PodEntry pod(const std::string& name, const std::string& node, const std::string& phase) {
  return {.name_space = "holdfast", .name = name, .node = node, .phase = phase, .containers = {"guard"}};
}

std::string summary_of(const std::vector<FleetMember>& members) {
  std::string text;
  for (const FleetMember& member : members) {
    text += member.node + "=" + member.pod + (member.obstacle.empty() ? "" : " (" + member.obstacle + ")") + "\n";
  }
  return text;
}

TEST(FleetMembers, AreOnePodOfEachNode) {
  PodEntry ending = pod("old", "a", "Running");
  ending.is_ending = true;
  PodEntry ready = pod("ready", "b", "Running");
  ready.is_ready = true;
  PodEntry other = pod("webhook", "c", "Running");
  other.containers = {"server"};
  const std::vector<PodEntry> pods = {pod("pending", "a", "Pending"),
                                      ending,
                                      pod("new", "a", "Running"),
                                      pod("starting", "b", "Running"),
                                      ready,
                                      other,
                                      pod("broken", "d", "Failed"),
                                      pod("waiting", "", "Pending")};
  EXPECT_EQ(summary_of(members_of(pods, "guard")),
            "(not scheduled)=waiting (pod holdfast/waiting is Pending)\n"
            "a=new\n"
            "b=ready\n"
            "d=broken (pod holdfast/broken is Failed)\n");
  EXPECT_EQ(summary_of(members_of({ending}, "guard")), "a=old\n");
}

TEST(FleetMembers, AreAmbiguousInSeveralNamespaces) {
  PodEntry unrelated = pod("unrelated", "a", "Pending");
  unrelated.name_space = "tenant";
  PodEntry other = unrelated;
  other.name_space = "elsewhere";
  other.containers = {"server"};
  const std::vector<PodEntry> pods = {unrelated, pod("x", "a", "Running"), pod("y", "b", "Running"), other};
  EXPECT_EQ(namespaces_of(pods, "guard"), (std::vector<std::string>{"holdfast", "tenant"}));
  EXPECT_EQ(namespaces_of({pod("x", "a", "Running")}, "guard"), std::vector<std::string>{"holdfast"});
}

TEST(FleetMembers, AreSelectedByNode) {
  const std::vector<FleetMember> members = members_of({pod("x", "a", "Running"), pod("y", "b", "Running")}, "guard");
  EXPECT_EQ(summary_of(select_members(members, {"z", "b", "b"})), "b=y\nz= (no pod of holdfast is there)\n");
}

TEST(ClusterName, IsNeverAnOption) {
  for (const char* name : {"a", "gpu-7", "ip-10-0-0-1.ec2.internal", "0"}) {
    EXPECT_TRUE(is_cluster_name(name)) << name;
  }
  for (const std::string& name : {std::string(), std::string("-n"), std::string(".."), std::string("A"),
                                  std::string("a b"), std::string("a/b"), std::string("a\n"), std::string(254, 'a')}) {
    EXPECT_FALSE(is_cluster_name(name)) << name;
  }
}

}  // namespace
}  // namespace hf::report
