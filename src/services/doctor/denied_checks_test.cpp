#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using container::AccessFailure;
using container::Gate;
using report::Finding;
using report::Severity;

constexpr const char* kGpu = "/dev/nvidia0";

// The gate refuses the GPU from this time on, in seconds after the container's start.
void deny_since(ContainerScene& scene, std::int64_t seconds) {
  scene.fail(kGpu, AccessFailure::cgroup_denies);
  scene.gate().meaning = table({"c 195:255 rw"});
  scene.gate().program->loaded_at = scene.container().started_at + seconds;
}

// cgroup v1: a list without the GPU, and one above it.
void deny_on_v1(ContainerScene& scene, const char* list_above) {
  scene.fail(kGpu, AccessFailure::cgroup_denies);
  Gate& gate = scene.gate();
  gate.hierarchy = container::Hierarchy::v1;
  gate.owner.clear();
  gate.program.reset();
  gate.list = *device::parse_v1_list("c 195:255 rwm\n");
  gate.meaning = meaning(*gate.list);
  scene.facts.observed.v1_above = {{"/cg/devices/docker", *device::parse_v1_list(list_above)}};
}

// The container's process is in a cgroup that it created below its own; the gates of its own one are not the process's.
void move_process_below(ContainerScene& scene) {
  scene.container().v2 = "/docker/web/init";
  scene.gate().is_own = false;
}

Finding first_finding(const ContainerScene& scene) {
  return doctor::check_container(scene.host, scene.facts).findings.front();
}

std::vector<ContainerCase> lost_cases() {
  return {
      {"HF-101", "rules rewritten an hour after the start", Found{kGpu},
       [](ContainerScene& scene) { deny_since(scene, 3600); }},
      {"HF-101", "rules of the start", kNotFound, [](ContainerScene& scene) { deny_since(scene, 1); }},
      {"HF-101", "rules of the start, written by a tool that starts no containers", Found{kGpu},
       [](ContainerScene& scene) {
         deny_since(scene, 1);
         scene.gate().owner = "holdfast";
       }},
      {"HF-101", "rules of the start, written by NVIDIA's hook", kNotFound,
       [](ContainerScene& scene) {
         deny_since(scene, 1);
         scene.gate().owner = "libnvidia-container";
       }},
      {"HF-101", "a program beside an older one that allows it", Found{kGpu},
       [](ContainerScene& scene) {
         deny_since(scene, 1);
         scene.facts.observed.gates.push_back(program_gate(9, "/docker/web", scene.facts.spec_table));
       }},
      {"HF-101", "a program beside a newer one that allows it", kNotFound,
       [](ContainerScene& scene) {
         deny_since(scene, 1);
         scene.facts.observed.gates.push_back(program_gate(11, "/docker/web", scene.facts.spec_table));
       }},
      {"HF-101", "v1, which keeps no times", Found{kGpu},
       [](ContainerScene& scene) { deny_on_v1(scene, "a *:* rwm\n"); }},
      {"HF-101", "the container was moved up, which HF-117 reports", kNotFound,
       [](ContainerScene& scene) {
         deny_since(scene, 3600);
         scene.container().v1["devices"] = "/docker";
       }},
      {"HF-101", "no gate can be read, and the probe is refused", Found{kGpu},
       [](ContainerScene& scene) {
         scene.fail(kGpu, AccessFailure::cgroup_denies);
         scene.facts.observed.gates.clear();
       }},
  };
}

std::vector<ContainerCase> never_given_cases() {
  return {
      {"HF-102", "rules of the start", Found{kGpu}, [](ContainerScene& scene) { deny_since(scene, 1); }},
      {"HF-102", "rules rewritten later", kNotFound, [](ContainerScene& scene) { deny_since(scene, 3600); }},
      {"HF-102", "v1, a node that no evidence names", Found{kGpu},
       [](ContainerScene& scene) {
         deny_on_v1(scene, "a *:* rwm\n");
         scene.change_owed(kGpu, [](container::OwedNode& owed) { owed.is_completion = true; });
       }},
      {"HF-102", "v1, a hook that leaves the rules alone", Found{kGpu},
       [](ContainerScene& scene) {
         deny_on_v1(scene, "a *:* rwm\n");
         scene.change_owed(kGpu, [](container::OwedNode& owed) { owed.sources = {container::Source::nvidia_hook}; });
         scene.host.sources.nvidia.no_cgroups = true;
       }},
  };
}

std::vector<ContainerCase> above_cases() {
  return {
      {"HF-103", "the parent cgroup denies it", Found{kGpu},
       [](ContainerScene& scene) {
         scene.fail(kGpu, AccessFailure::cgroup_denies);
         Gate parent = program_gate(5, "/docker", table({"c 195:255 rw"}));
         parent.is_own = false;
         scene.facts.observed.gates.push_back(parent);
       }},
      {"HF-103", "the parent denies it, and the container's own cgroup as well", kNotFound,
       [](ContainerScene& scene) {
         deny_since(scene, 3600);
         Gate parent = program_gate(5, "/docker", table({"c 195:255 rw"}));
         parent.is_own = false;
         scene.facts.observed.gates.insert(scene.facts.observed.gates.begin(), parent);
       }},
      {"HF-103", "a process in a cgroup below the container's own, which denies it", kNotFound,
       [](ContainerScene& scene) {
         deny_since(scene, 3600);
         move_process_below(scene);
       }},
      {"HF-103", "a cgroup whose directory only looks like the container's", Found{kGpu},
       [](ContainerScene& scene) {
         deny_since(scene, 3600);
         move_process_below(scene);
         scene.gate().cgroup = container::CgroupPath{"/docker"};
         scene.gate().where = "/docker/web/mounted/here/docker";
       }},
      {"HF-103", "a cgroup above what is mounted", Found{kGpu},
       [](ContainerScene& scene) {
         deny_since(scene, 3600);
         scene.gate().is_own = false;
         scene.gate().cgroup.reset();
       }},
      {"HF-103", "v1, a list above does not have it", Found{kGpu},
       [](ContainerScene& scene) { deny_on_v1(scene, "c 195:255 rwm\n"); }},
      {"HF-103", "v1, the list above allows all but hides its exceptions", kNotFound,
       [](ContainerScene& scene) { deny_on_v1(scene, "a *:* rwm\n"); }},
  };
}

}  // namespace

std::vector<ContainerCase> denied_cases() { return concatenate({lost_cases(), never_given_cases(), above_cases()}); }

namespace {

TEST(DeniedChecks, NameTheWriterAndTheCure) {
  ContainerScene scene;
  deny_since(scene, 3600);
  scene.gate().owner = "systemd";
  scene.put_in_unit(table({"c 195:255 rw"}));
  scene.facts.holders.pids[{device::Kind::character, 195, 0}] = {container::Pid{7}, container::Pid{7}};
  const Finding finding = first_finding(scene);
  EXPECT_EQ(sentence_of(finding), "lost the right to open /dev/nvidia0: its device rules were rewritten by systemd");
  EXPECT_EQ(finding.severity, Severity::critical);
  ASSERT_EQ(finding.evidence.size(), 2U);
  EXPECT_EQ(finding.evidence[1], "processes 7 opened it before and go on using it: no need to restart them");
  EXPECT_EQ(finding.cure, (std::vector<std::string>{
                              "systemctl set-property --runtime docker-web.scope 'DeviceAllow=/dev/char/195:0 rw'",
                              "holdfast grant web 'c 195:0 rw'"}));
}

TEST(DeniedChecks, WarnOnlyWhereTheDeviceWorksWithoutTheNode) {
  ContainerScene scene;
  deny_since(scene, 3600);
  scene.change_owed(kGpu, [](container::OwedNode& owed) { owed.part = device::Part::helper; });
  EXPECT_EQ(first_finding(scene).severity, Severity::warning);
}

TEST(DeniedChecks, GrantAtTheTopmostListFirst) {
  ContainerScene scene;
  deny_on_v1(scene, "c 195:255 rwm\n");
  scene.facts.observed.v1_above.push_back({"/cg/devices", *device::parse_v1_list("c 195:255 rwm\n")});
  EXPECT_EQ(first_finding(scene).cure, (std::vector<std::string>{"holdfast grant cgroup:/cg/devices 'c 195:0 rw'",
                                                                 "holdfast grant web 'c 195:0 rw'"}));
  EXPECT_TRUE(first_finding(scene).needs_all_cures);
}

TEST(DeniedChecks, NameTheWriterThatTheGuardHasRecorded) {
  ContainerScene scene;
  deny_since(scene, 3600);
  report::History& history = scene.host.history[scene.container().id.value];
  history.last_loss = {0, "runc (pid 7), for kubelet", {kGpu}};
  const Finding finding = first_finding(scene);
  EXPECT_EQ(sentence_of(finding),
            "lost the right to open /dev/nvidia0: its device rules were rewritten by runc (pid 7), for kubelet at "
            "1970-01-01T00:00:00Z");
  EXPECT_EQ(finding.evidence.back(), "recorded by holdfastd: holdfast blame web");
  history.last_loss->devices = {"/dev/nvidia1"};  // another loss
  EXPECT_EQ(sentence_of(first_finding(scene)),
            "lost the right to open /dev/nvidia0: its device rules were rewritten by runc");
}

TEST(DeniedChecks, BlameNoWriterForALossThatWasMadeGood) {
  const auto record = [](report::Action action, std::int32_t pid) {
    report::BlameRecord made;
    made.id = "web";
    made.at = 7'000;
    made.action = action;
    made.devices = {kGpu};
    made.writer.pid.value = pid;
    made.writer.name = pid == 0 ? "" : "runc";
    return made;
  };
  using report::Action;
  const auto last = [](const std::vector<report::BlameRecord>& records) {
    return report::histories_of(records).at("web").last_loss;
  };
  ASSERT_TRUE(last({record(Action::healed, 7), record(Action::observed, 8)}));
  EXPECT_EQ(last({record(Action::healed, 7), record(Action::observed, 8)})->writer, "runc (pid 8)");
  EXPECT_EQ(last({record(Action::failed, 0)})->writer, "") << "unknown: the gate's owner is a better guess";
  EXPECT_FALSE(last({record(Action::observed, 8), record(Action::healed, 7)})) << "whatever is missing was lost later";
}

TEST(DeniedChecks, TakeTheOwnerOfTheGateWhereTheRecordedWriterIsUnknown) {
  ContainerScene scene;
  deny_since(scene, 3600);
  scene.host.history[scene.container().id.value].last_loss = {0, "", {kGpu}};
  EXPECT_EQ(sentence_of(first_finding(scene)),
            "lost the right to open /dev/nvidia0: its device rules were rewritten by runc at 1970-01-01T00:00:00Z");
}

TEST(DeniedChecks, KeepTheCauseThatWasForetold) {
  ContainerScene scene;
  deny_since(scene, 3600);
  scene.put_in_pod();
  scene.container().runtime = container::Runtime{"runc", "/usr/bin/runc", "1.0.0-rc93"};
  scene.host.cpu_state = kube::CpuState{"static", {}};
  const Finding finding = first_finding(scene);
  ASSERT_EQ(finding.code, "HF-101");
  EXPECT_NE(finding.evidence.back().find("kubelet's static CPU manager is active"), std::string::npos);
  EXPECT_NE(finding.cure.back().find("until the next update"), std::string::npos);
}

}  // namespace
}  // namespace hf::test
