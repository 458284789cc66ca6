#include <algorithm>

#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using container::AccessFailure;
using container::Mount;
using report::Finding;
using report::Severity;

constexpr const char* kGpu = "/dev/nvidia0";
constexpr const char* kControl = "/dev/nvidiactl";

// A failure that a node without a claim to it cannot have.
template <AccessFailure kFailure>
void fail(ContainerScene& scene) {
  scene.fail(kGpu, kFailure);
}
template <AccessFailure kFailure>
void fail_where_only_a_rule_is_owed(ContainerScene& scene) {
  scene.fail(kGpu, kFailure);
  scene.change_owed(kGpu, [](container::OwedNode& owed) { owed.is_rule_only = true; });
}

void lose_all_nodes(ContainerScene& scene) {
  scene.fail(kGpu, AccessFailure::missing);
  scene.fail(kControl, AccessFailure::missing);
}

void inject_nothing(ContainerScene& scene) {
  lose_all_nodes(scene);
  scene.facts.spec_table = {};
}

// The guard added what the runtime left out.
void complete(ContainerScene& scene) {
  scene.facts.spec_table = {};
  scene.host.history[scene.container().id.value] = {0, true};
}

Finding first_finding(const ContainerScene& scene) {
  return doctor::check_container(scene.host, scene.facts).findings.front();
}

std::vector<ContainerCase> missing_cases() {
  return {
      {"HF-104", "a node is not in the container", Found{kControl},
       [](ContainerScene& scene) { scene.fail(kControl, AccessFailure::missing); }},
      {"HF-104", "a node is not on the host either", Found{kControl},
       [](ContainerScene& scene) { scene.fail(kControl, AccessFailure::missing_on_host); }},
      {"HF-104", "one of each", (Found{kGpu, kControl}),
       [](ContainerScene& scene) {
         scene.fail(kGpu, AccessFailure::missing);
         scene.fail(kControl, AccessFailure::missing_on_host);
       }},
      {"HF-104", "all are missing that the bundle has", (Found{kGpu, kControl}), lose_all_nodes},
      {"HF-104", "nothing was injected, which HF-105 reports", kNotFound, inject_nothing},

      {"HF-105", "nothing was injected", (Found{kGpu, kControl}), inject_nothing},
      {"HF-105", "all are missing that the bundle has", kNotFound, lose_all_nodes},
      {"HF-105", "one of two is missing", kNotFound,
       [](ContainerScene& scene) {
         inject_nothing(scene);
         scene.fail(kControl, AccessFailure::none);
       }},
      {"HF-105", "the guard added nodes and rules", Found{}, complete},
      {"HF-105", "the guard added nodes and rules, and libraries are there", kNotFound,
       [](ContainerScene& scene) {
         complete(scene);
         scene.facts.mounts = {Mount{"/usr/lib64/libcuda.so.550.54.15", "/", "ext4", "/dev/sda1"}};
       }},
      {"HF-105", "the guard added nothing", kNotFound,
       [](ContainerScene& scene) {
         complete(scene);
         scene.host.history.begin()->second.is_completed = false;
       }},
  };
}

std::vector<ContainerCase> number_cases() {
  return {
      {"HF-106", "another driver has the number", Found{kGpu}, fail<AccessFailure::wrong_driver>},
      {"HF-106", "no driver has the number, and the device has another one", Found{kGpu},
       [](ContainerScene& scene) {
         scene.fail(kGpu, AccessFailure::no_driver);
         scene.node(kGpu).seen.device = device::Device{device::Kind::character, 240, 0};
       }},
      {"HF-106", "the module is not loaded", kNotFound, fail<AccessFailure::no_driver>},

      {"HF-107", "the module is not loaded", Found{kGpu}, fail<AccessFailure::no_driver>},
      {"HF-107", "the device has another number", kNotFound,
       [](ContainerScene& scene) {
         scene.fail(kGpu, AccessFailure::no_driver);
         scene.node(kGpu).seen.device = device::Device{device::Kind::character, 240, 0};
       }},
  };
}

std::vector<ContainerCase> refusal_cases() {
  using enum AccessFailure;
  return {
      {"HF-108", "mode 000", Found{kGpu}, fail<permission_bits>},
      {"HF-108", "mode 000, and only a rule is owed", kNotFound, fail_where_only_a_rule_is_owed<permission_bits>},
      {"HF-109", "SELinux", Found{kGpu}, fail<security_module>},
      {"HF-109", "SELinux, and only a rule is owed", kNotFound, fail_where_only_a_rule_is_owed<security_module>},
      {"HF-110", "nodev", Found{kGpu}, fail<nodev_mount>},
      {"HF-110", "nodev, and only a rule is owed", kNotFound, fail_where_only_a_rule_is_owed<nodev_mount>},
      {"HF-111", "an excluded GPU", Found{kGpu}, fail<driver_refuses>},
      {"HF-111", "SELinux", kNotFound, fail<security_module>},
      {"HF-112", "a GPU off the bus", Found{kGpu}, fail<device_gone>},
      {"HF-112", "a GPU in a reset", kNotFound, fail<busy>},
      {"HF-113", "RmInitAdapter failed", Found{kGpu}, fail<initialisation>},
      {"HF-113", "a GPU off the bus", kNotFound, fail<device_gone>},
      {"HF-114", "a GPU in a reset", Found{kGpu}, fail<busy>},
      {"HF-114", "RmInitAdapter failed", kNotFound, fail<initialisation>},
      {"HF-115", "a directory in its place", Found{kGpu}, fail<no_device_node>},
      {"HF-115", "a directory in its place, and only a rule is owed", kNotFound,
       fail_where_only_a_rule_is_owed<no_device_node>},
      {"HF-116", "the probe hangs", Found{kGpu}, fail<unknown>},
      {"HF-116", "the probe hangs, and only a rule is owed", kNotFound, fail_where_only_a_rule_is_owed<unknown>},
  };
}

}  // namespace

std::vector<ContainerCase> node_cases() { return concatenate({missing_cases(), number_cases(), refusal_cases()}); }

namespace {

TEST(NodeChecks, HealWhatANewNodeHeals) {
  for (const AccessFailure failure : {AccessFailure::missing, AccessFailure::wrong_driver,
                                      AccessFailure::permission_bits, AccessFailure::no_device_node}) {
    ContainerScene scene;
    scene.fail(kGpu, failure);
    EXPECT_EQ(first_finding(scene).cure.front(), "holdfast heal web") << to_string(failure);
    scene.change_owed(kGpu, [](container::OwedNode& owed) { owed.device.reset(); });
    const std::vector<std::string> cures = first_finding(scene).cure;
    EXPECT_EQ(std::ranges::find(cures, "holdfast heal web"), cures.end())
        << to_string(failure) << ": its numbers are not known";
  }
}

TEST(NodeChecks, TakeADiagnosisForNoCure) {
  ContainerScene scene;
  scene.fail(kGpu, AccessFailure::security_module);
  EXPECT_EQ(first_finding(scene).cure, std::vector<std::string>{"setsebool -P container_use_devices on (SELinux)"});
  EXPECT_NE(first_finding(scene).evidence.back().find("ausearch"), std::string::npos);
}

TEST(NodeChecks, RemountTheMountThatTheNodeIsOn) {
  ContainerScene scene;
  scene.fail(kGpu, AccessFailure::nodev_mount);
  EXPECT_EQ(first_finding(scene).cure.front(), "mount -N 42 -o remount,bind,dev /dev");
  scene.facts.mounts = {Mount{"/", "/", "overlay", "overlay"}, Mount{"/dev/nvidia0", "/", "tmpfs", "x"}};
  EXPECT_EQ(first_finding(scene).cure.front(), "mount -N 42 -o remount,bind,dev /dev/nvidia0");
}

TEST(NodeChecks, QuoteTheKernelLogAboutTheGpuInQuestion) {
  ContainerScene scene;
  scene.fail(kGpu, AccessFailure::device_gone);
  using enum nvidia::LogEvent::Kind;
  scene.host.log = {{xid, 79, "0000:65:00", "fallen off the bus"}, {xid, 79, "0000:b3:00", "of the other GPU"}};
  EXPECT_EQ(first_finding(scene).evidence,
            (std::vector<std::string>{"/dev/nvidia0: it fails", "kernel log: fallen off the bus"}));
}

TEST(NodeChecks, OnlyWarnWhereNothingIsKnown) {
  ContainerScene scene;
  scene.fail(kGpu, AccessFailure::unknown);
  EXPECT_EQ(first_finding(scene).severity, Severity::warning);
  EXPECT_EQ(sentence_of(first_finding(scene)), "about /dev/nvidia0: it cannot be judged");
}

}  // namespace
}  // namespace hf::test
