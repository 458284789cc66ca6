#include "core/container/entitlement/entitlement.h"

#include <gtest/gtest.h>

namespace hf::container {
namespace {

using device::Access;
using device::Device;
using device::Inventory;
using device::Kind;

const Access kReadWrite = Access::read | Access::write;

Device character(std::uint32_t major, std::uint32_t minor) { return {Kind::character, major, minor}; }

Inventory two_gpus() {
  Inventory inventory;
  inventory.drivers = device::parse_driver_names("Character devices:\n195 nvidia\n238 nvidia-uvm\n10 misc\n");
  for (const auto& [path, numbers] :
       std::vector<std::pair<std::string, Device>>{{"/dev/nvidia0", character(195, 0)},
                                                   {"/dev/nvidia1", character(195, 1)},
                                                   {"/dev/nvidiactl", character(195, 255)},
                                                   {"/dev/nvidia-uvm", character(238, 0)},
                                                   {"/dev/nvidia-uvm-tools", character(238, 1)},
                                                   {"/dev/fuse", character(10, 229)}}) {
    inventory.nodes.push_back({path, "", device::Part::unit, numbers, numbers, 0666, 0, 0});
  }
  return inventory;
}

Claim claim(Source source, std::vector<WantedNode> nodes) { return {source, "x", std::move(nodes), {}, {}, false, {}}; }

std::vector<std::string> paths_of(const Entitlement& entitlement) {
  std::vector<std::string> paths;
  for (const OwedNode& node : entitlement.nodes) {
    paths.push_back(node.path);
  }
  return paths;
}

TEST(Entitlement, OfAGpuIncludesTheNodesItNeeds) {
  const std::vector<Claim> claims = {claim(Source::oci, {{"/dev/nvidia0", character(195, 0), kReadWrite}})};
  const Entitlement owed = entitle(claims, two_gpus(), device::built_in_classes());
  EXPECT_EQ(paths_of(owed),
            (std::vector<std::string>{"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidiactl"}));
  EXPECT_TRUE(owed.find("/dev/nvidia-uvm")->is_completion);
  EXPECT_FALSE(owed.find("/dev/nvidia0")->is_completion);
  EXPECT_EQ(owed.find("/dev/nvidia-uvm")->device, character(238, 0));
}

TEST(Entitlement, LeavesOutNodesThatTheRequestExcludes) {
  Claim utility = claim(Source::nvidia_hook, {{"/dev/nvidia0", {}, kReadWrite}, {"/dev/nvidiactl", {}, kReadWrite}});
  utility.not_wanted = {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
  EXPECT_EQ(paths_of(entitle({utility}, two_gpus(), device::built_in_classes())),
            (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidiactl"}));
}

TEST(Entitlement, HasTheCurrentDeviceNumbers) {
  const std::vector<Claim> claims = {claim(Source::cdi, {{"/dev/nvidia-uvm", character(510, 0), kReadWrite}})};
  const Entitlement owed = entitle(claims, two_gpus(), device::built_in_classes());
  EXPECT_EQ(owed.nodes.at(0).device, character(238, 0));
  EXPECT_TRUE(owed.nodes.at(0).is_stale());
}

TEST(Entitlement, KeepsTheClaimedMinorOfARenamedNode) {
  // docker run --device /dev/nvidia1:/dev/nvidia0
  const std::vector<Claim> claims = {claim(Source::oci, {{"/dev/nvidia0", character(195, 1), kReadWrite}})};
  EXPECT_EQ(entitle(claims, two_gpus(), device::built_in_classes()).find("/dev/nvidia0")->device, character(195, 1));
}

TEST(Entitlement, OfRulesAloneRequiresNoNode) {
  Claim rules = claim(Source::oci, {});
  rules.rules = {*device::parse_rule("c 10:229 rw")};
  const Entitlement owed = entitle({rules}, two_gpus(), device::built_in_classes());
  ASSERT_EQ(paths_of(owed), std::vector<std::string>{"/dev/fuse"});
  EXPECT_TRUE(owed.nodes[0].is_rule_only);
}

TEST(Weighing, RefusesAnImagesRequestInAPodThatWasAllocatedNothing) {
  const std::vector<Claim> claims = {claim(Source::nvidia_hook, {{"/dev/nvidia0", {}, kReadWrite}})};
  const std::vector<Claim> weighed = weigh(claims, {true, true, ""});
  const Entitlement owed = entitle(weighed, two_gpus(), device::built_in_classes());
  EXPECT_TRUE(owed.owes_nothing());
  ASSERT_EQ(owed.refused.size(), 1);
  EXPECT_NE(owed.refused[0].refused.find("allocated no such device"), std::string::npos);
}

TEST(Weighing, TrustsInAPodOnlyWhatKubeletAllocated) {
  const std::vector<Claim> claims = {
      claim(Source::nvidia_hook, {{"/dev/nvidia0", {}, kReadWrite}, {"/dev/nvidia1", {}, kReadWrite}}),
      claim(Source::kubelet, {{"/dev/nvidia0", {}, kReadWrite}})};
  const Entitlement owed = entitle(weigh(claims, {true, true, ""}), two_gpus(), device::built_in_classes());
  EXPECT_NE(owed.find("/dev/nvidia0"), nullptr);
  EXPECT_EQ(owed.find("/dev/nvidia1"), nullptr);
  EXPECT_EQ(owed.refused.size(), 1);
}

TEST(Weighing, TakesAClaimOfThePodAsSupportOnly) {
  Claim prepared = claim(Source::dra, {{"/dev/nvidia0", {}, kReadWrite}});
  prepared.is_about_pod = true;
  const std::vector<Claim> request = {claim(Source::cdi, {{"/dev/nvidia0", {}, kReadWrite}}), prepared};
  EXPECT_NE(entitle(weigh(request, {true, true, ""}), two_gpus(), device::built_in_classes()).find("/dev/nvidia0"),
            nullptr);
  EXPECT_TRUE(entitle(weigh({prepared}, {true, true, ""}), two_gpus(), device::built_in_classes()).owes_nothing());
}

TEST(Weighing, TrustsTheHookOutsidePods) {
  const std::vector<Claim> claims = {claim(Source::nvidia_hook, {{"/dev/nvidia0", {}, kReadWrite}})};
  EXPECT_TRUE(weigh(claims, {false, false, ""}).at(0).refused.empty());
}

TEST(Weighing, NeverTrustsAnEnvironmentAlone) {
  const std::vector<Claim> claims = {claim(Source::environment, {{"/dev/nvidia0", {}, kReadWrite}})};
  EXPECT_FALSE(weigh(claims, {false, false, ""}).at(0).refused.empty());
}

TEST(Weighing, RefusesTheClaimsOfANestedContainer) {
  for (const Source source : {Source::oci, Source::cdi, Source::nvidia_hook}) {
    const std::vector<Claim> claims = {claim(source, {{"/dev/nvidia0", {}, kReadWrite}})};
    EXPECT_FALSE(weigh(claims, {false, false, "outer"}).at(0).refused.empty());
  }
}

TEST(Summary, NamesUnitsByClass) {
  const std::vector<Claim> claims = {claim(Source::oci, {{"/dev/nvidia0", character(195, 0), kReadWrite},
                                                         {"/dev/nvidia1", character(195, 1), kReadWrite},
                                                         {"/dev/fuse", character(10, 229), kReadWrite},
                                                         {"/dev/mine", character(99, 0), kReadWrite}})};
  EXPECT_EQ(summary_of(entitle(claims, two_gpus(), device::built_in_classes())), "fuse nvidia:0,1 other:mine");
}

}  // namespace
}  // namespace hf::container
