#include <algorithm>

#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using doctor::Findings;
using report::Finding;
using report::Severity;

constexpr const char* kGpu = "/dev/nvidia0";

void run_by(ContainerScene& scene, const char* runtime, const char* version) {
  scene.container().runtime = container::Runtime{runtime, std::string("/usr/bin/") + runtime, version};
}

// The unit has no entry for the GPU, which the rules allow.
void leave_out_of_unit(ContainerScene& scene) { scene.put_in_unit(table({"c 195:255 rw"})); }

void unlink_gpu(ContainerScene& scene) { scene.host.linked.erase({device::Kind::character, 195, 0}); }

// A hook gave it the GPU; the bundle does not have it.
void give_behind_the_bundle(ContainerScene& scene) { scene.facts.spec_table = table({"c 195:255 rw"}); }

void lose_at_update(ContainerScene& scene) {
  run_by(scene, "runc", "1.0.0-rc93");
  give_behind_the_bundle(scene);
}

void lose_by_kubelet(ContainerScene& scene, const char* policy, const char* kubelet) {
  lose_at_update(scene);
  scene.put_in_pod();
  scene.host.cpu_state = kube::CpuState{policy, {}};
  scene.host.kubelet_version = kubelet;
}

std::vector<ContainerCase> unit_cases() {
  return {
      {"HF-201", "the unit lacks the GPU", Found{kGpu}, leave_out_of_unit},
      {"HF-201", "the unit has everything", kNotFound,
       [](ContainerScene& scene) { scene.put_in_unit(scene.facts.spec_table); }},
      {"HF-201", "the unit lacks the GPU, and the rules do too", kNotFound,
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         scene.fail(kGpu, container::AccessFailure::cgroup_denies);
       }},
      {"HF-201", "the unit names a program that has what the bundle has", kNotFound,
       [](ContainerScene& scene) {
         scene.put_in_unit(device::Table::everything());
         scene.facts.unit->pinned = {"/sys/fs/bpf/crun/web"};
       }},
      {"HF-201", "the unit names a program, and the bundle lacks the GPU", Found{kGpu},
       [](ContainerScene& scene) {
         scene.put_in_unit(device::Table::everything());
         scene.facts.unit->pinned = {"/sys/fs/bpf/crun/web"};
         give_behind_the_bundle(scene);
       }},
      {"HF-201", "runc left out a device without a link, which HF-202 reports", kNotFound,
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         run_by(scene, "runc", "1.1.5");
         unlink_gpu(scene);
       }},
  };
}

std::vector<ContainerCase> left_out_cases() {
  return {
      {"HF-202", "runc 1.1.5 and no link", Found{kGpu},
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         run_by(scene, "runc", "1.1.5");
         unlink_gpu(scene);
       }},
      {"HF-202", "runc 1.1.7 and no link", kNotFound,
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         run_by(scene, "runc", "1.1.7");
         unlink_gpu(scene);
       }},
      {"HF-202", "runc 1.1.5 and a link", kNotFound,
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         run_by(scene, "runc", "1.1.5");
       }},
      {"HF-202", "runc 1.1.5 was not told of the device", kNotFound,
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         run_by(scene, "runc", "1.1.5");
         unlink_gpu(scene);
         give_behind_the_bundle(scene);
       }},
  };
}

std::vector<ContainerCase> update_cases() {
  return {
      {"HF-203", "an old runc, and the bundle lacks the GPU", Found{kGpu}, lose_at_update},
      {"HF-203", "an old runc, and the bundle has the GPU", kNotFound,
       [](ContainerScene& scene) { run_by(scene, "runc", "1.0.0-rc93"); }},
      {"HF-203", "a new runc, and the bundle lacks the GPU", kNotFound, give_behind_the_bundle},
      {"HF-203", "youki, which keeps nothing", (Found{kGpu, "/dev/nvidiactl"}),
       [](ContainerScene& scene) { run_by(scene, "youki", "0.3.0"); }},
      {"HF-203", "youki, and the bundle allows everything", kNotFound,
       [](ContainerScene& scene) {
         run_by(scene, "youki", "0.3.0");
         scene.facts.spec_allows_all = true;
       }},
      {"HF-203", "runc with systemd, which HF-201 reports", kNotFound,
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         run_by(scene, "runc", "1.1.12");
       }},
      {"HF-203", "kubelet will update it, which HF-204 reports", kNotFound,
       [](ContainerScene& scene) { lose_by_kubelet(scene, "static", "v1.30.2"); }},

      {"HF-204", "kubelet's static CPU manager", Found{kGpu},
       [](ContainerScene& scene) { lose_by_kubelet(scene, "static", "v1.30.2"); }},
      {"HF-204", "a kubelet that resizes pods", Found{kGpu},
       [](ContainerScene& scene) { lose_by_kubelet(scene, "none", "v1.33.0"); }},
      {"HF-204", "a kubelet without either", kNotFound,
       [](ContainerScene& scene) { lose_by_kubelet(scene, "none", "v1.32.9"); }},
      {"HF-204", "no pod", kNotFound,
       [](ContainerScene& scene) {
         lose_by_kubelet(scene, "static", "v1.30.2");
         scene.container().pod.reset();
       }},
      {"HF-204", "a static CPU manager, and a unit that lacks the GPU", Found{kGpu},
       [](ContainerScene& scene) {
         leave_out_of_unit(scene);
         scene.put_in_pod();
         scene.host.cpu_state = kube::CpuState{"static", {}};
       }},
  };
}

bool has_line(const Finding& finding, const std::string& part) {
  return std::ranges::any_of(finding.evidence,
                             [&part](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

std::vector<ContainerCase> risk_cases() { return concatenate({unit_cases(), left_out_cases(), update_cases()}); }

namespace {

TEST(RiskChecks, AreWarningsWhereTheGuardDoesNotRepair) {
  ContainerScene scene;
  lose_by_kubelet(scene, "static", "1.30.0");
  scene.host.has_guard = true;
  scene.host.config.policy.mode = container::Mode::observe;
  const Finding observed = doctor::find_loss_by_kubelet(scene.host, scene.facts).front();
  EXPECT_EQ(observed.severity, Severity::warning);
  EXPECT_TRUE(observed.cure.front().starts_with("guard.mode: heal in ")) << observed.cure.front();
  scene.host.config.policy = {};
  container::PolicyRule rule;
  rule.match.device_class = "nvidia";
  rule.mode = container::Mode::harden;
  scene.host.config.policy.rules = {rule};
  EXPECT_EQ(doctor::find_loss_by_kubelet(scene.host, scene.facts).front().severity, Severity::warning);
}

TEST(RiskChecks, ARepairKeepsWhatTheUnitLacks) {
  ContainerScene scene;
  leave_out_of_unit(scene);
  EXPECT_EQ(doctor::check_container(scene.host, scene.facts).state, container::State::at_risk);
  scene.host.has_guard = true;
  const Finding kept = doctor::find_devices_not_in_unit(scene.host, scene.facts).front();
  EXPECT_EQ(kept.severity, Severity::note);
  EXPECT_EQ(
      sentence_of(kept),
      "has its rules rewritten at the next daemon-reload, and keeps /dev/nvidia0: holdfastd gives it back at once");
  EXPECT_EQ(doctor::check_container(scene.host, scene.facts).state, container::State::ok);
}

TEST(RiskChecks, AreNotesWhileTheGuardRuns) {
  ContainerScene scene;
  lose_at_update(scene);
  const Findings alone = doctor::find_loss_at_update(scene.host, scene.facts);
  EXPECT_EQ(alone.front().severity, Severity::warning);
  EXPECT_EQ(sentence_of(alone.front()), "will lose /dev/nvidia0 at the next update of its resources");
  scene.host.has_guard = true;
  const Findings guarded = doctor::find_loss_at_update(scene.host, scene.facts);
  EXPECT_EQ(guarded.front().severity, Severity::note);
  EXPECT_TRUE(sentence_of(guarded.front()).ends_with("holdfastd gives it back at once"))
      << sentence_of(guarded.front());
}

TEST(RiskChecks, SayHowOftenKubeletUpdates) {
  ContainerScene scene;
  lose_by_kubelet(scene, "static", "v1.21.14");
  EXPECT_TRUE(has_line(doctor::find_loss_by_kubelet(scene.host, scene.facts).front(), "every 10 seconds"));
  scene.host.kubelet_version = "v1.22.0";
  EXPECT_TRUE(has_line(doctor::find_loss_by_kubelet(scene.host, scene.facts).front(), "after each restart of kubelet"));
  scene.host.kubelet_version.clear();
  EXPECT_TRUE(has_line(doctor::find_loss_by_kubelet(scene.host, scene.facts).front(), "after each restart of kubelet"));
}

TEST(RiskChecks, CureByTheUnitWhereThatListsDevices) {
  ContainerScene scene;
  leave_out_of_unit(scene);
  const std::string command = "systemctl set-property --runtime docker-web.scope 'DeviceAllow=/dev/char/195:0 rw'";
  EXPECT_EQ(doctor::find_devices_not_in_unit(scene.host, scene.facts).front().cure, std::vector{command});
  scene.facts.unit->pinned = {"/sys/fs/bpf/crun/web"};
  EXPECT_EQ(doctor::find_devices_not_in_unit(scene.host, scene.facts).front().cure,
            std::vector<std::string>{
                "start it again with its devices in the bundle: by CDI, or with --device for each node"});
}

TEST(RiskChecks, TellsAPodWhatHelpsInItsOwnTerms) {
  ContainerScene scene;
  lose_by_kubelet(scene, "static", "1.30.0");
  const std::vector<report::Finding> findings = doctor::check_container(scene.host, scene.facts).findings;
  const auto found = std::ranges::find(findings, "HF-204", &report::Finding::code);
  ASSERT_NE(found, findings.end());
  ASSERT_EQ(found->cure.size(), 4U);
  EXPECT_TRUE(found->cure[0].starts_with("systemctl start holdfastd && systemctl enable holdfastd"));
  EXPECT_TRUE(found->cure[1].starts_with("upgrade runc"));
  EXPECT_TRUE(found->cure[2].starts_with("holdfast setup containerd, then runtimeClassName: holdfast"));
  EXPECT_NE(found->cure[3].find("holdfast-kube"), std::string::npos);
  EXPECT_FALSE(found->needs_all_cures);
  scene.container().engine = "cri-o";
  EXPECT_TRUE(
      doctor::find_loss_by_kubelet(scene.host, scene.facts).front().cure[2].starts_with("holdfast setup crio,"));
}

// kubeadm's default: runc, and units of systemd.
TEST(RiskChecks, TellsAPodOfSystemdsWhatHelpsEveryPodFirst) {
  ContainerScene scene;
  leave_out_of_unit(scene);
  scene.put_in_pod();
  scene.host.cpu_state = kube::CpuState{"static", {}};
  const std::vector<std::string> cures = doctor::find_loss_by_kubelet(scene.host, scene.facts).front().cure;
  ASSERT_EQ(cures.size(), 4U);
  EXPECT_TRUE(cures[0].starts_with("systemctl start holdfastd"));
  EXPECT_NE(cures[1].find("runtimeClassName: holdfast"), std::string::npos);
  EXPECT_NE(cures[2].find("holdfast-kube"), std::string::npos);
  EXPECT_TRUE(cures[3].starts_with("systemctl set-property --runtime docker-web.scope"));
}

TEST(RiskChecks, ARuntimeThatDropsWhatItsConfigListsIsReplaced) {
  ContainerScene scene;
  scene.put_in_pod();
  run_by(scene, "youki", "0.3.0");
  scene.host.cpu_state = kube::CpuState{"static", {}};
  scene.host.has_guard = true;
  EXPECT_EQ(doctor::find_loss_by_kubelet(scene.host, scene.facts).front().cure,
            std::vector<std::string>{"use runc or crun"});
}

}  // namespace
}  // namespace hf::test
