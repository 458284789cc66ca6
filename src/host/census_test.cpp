#include "host/census.h"

#include <fstream>

#include <gtest/gtest.h>

#include "host/cpu_tenant.h"
#include "host/evidence.h"
#include "support/fake_host.h"

namespace hf::host {
namespace {

const std::string kId(64, 'b');

// A container of docker with a GPU, and a process of a user in a cgroup that the user has created.
test::Files machine_with(const std::string& cgroup) {
  return {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
          {"proc/stat", "btime 1000\n"},
          {"proc/50/cgroup", "0::/system.slice/docker-" + kId + ".scope\n"},
          {"proc/50/stat", "50 (app) S 1 50 50 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4000 1 1 1\n"},
          {"proc/50/status", "Name:\tapp\nNSpid:\t50\t1\n"},
          {"proc/100/cgroup", "0::" + cgroup + "\n"},
          {"proc/100/stat", "100 (sh) S 1 100 100 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5000 1 1 1\n"},
          {"proc/100/status", "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t100\n"},
          {"run/runc/" + kId + "/state.json", R"({"id":")" + kId +
                                                  R"(","init_process_pid":50,"init_process_start":4000,)"
                                                  R"("config":{"labels":["bundle=/run/b"]}})"},
          {"run/b/config.json",
           R"({"linux":{"devices":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0}],"resources":{"devices":)"
           R"([{"allow":false},{"allow":true,"type":"c","major":195,"minor":0,"access":"rw"}]}}})"}};
}

std::vector<std::string> cgroups_owed_a_gpu(const kernel::Host& host) {
  std::vector<std::string> cgroups;
  const config::Config config = *config::parse_config("");
  const Result<Census> census = take_census(host, config);
  for (const DiscoveredContainer& discovered :
       census ? census->discovered_containers : std::vector<DiscoveredContainer>()) {
    const container::Entitlement owed = entitlement_of(host, discovered, read_sources(host, config), {}, config);
    if (owed.find("/dev/nvidia0") != nullptr) {
      cgroups.push_back(discovered.container.cgroup);
    }
  }
  return cgroups;
}

TEST(Census, OwesAContainerWhatItsBundleGives) {
  const test::FakeHost fake(machine_with("/user.slice/user-1000.slice/session-2.scope"));
  EXPECT_EQ(cgroups_owed_a_gpu(fake.open()), std::vector<std::string>{"/system.slice/docker-" + kId + ".scope"});
}

// systemd lets users create cgroups below their own: a name there proves nothing. The runtime's state has the pid.
TEST(Census, OwesNothingToACgroupThatOnlyHasAContainersName) {
  for (const std::string& cgroup :
       {"/user.slice/user-1000.slice/user@1000.service/docker-" + kId + ".scope", "/web/docker/" + kId}) {
    const test::FakeHost fake(machine_with(cgroup));
    EXPECT_EQ(cgroups_owed_a_gpu(fake.open()).size(), 1U) << cgroup;
  }
}

// Docker's containerd image store has its images elsewhere.
TEST(Census, LabelsThatAskForCpusCountWhereTheImageIsKnown) {
  test::Files files = machine_with("/user.slice/user-1000.slice/session-2.scope");
  files["var/lib/docker/containers/" + kId + "/config.v2.json"] =
      R"({"Name":"/web","Image":"sha256:12","Driver":"overlay2","Config":{"Labels":{"holdfast.cpus":"4"}}})";
  for (const bool is_known : {false, true}) {
    if (is_known) {
      files["var/lib/docker/image/overlay2/imagedb/content/sha256/12"] = R"({"config":{"Labels":{"a":"b"}}})";
    }
    const test::FakeHost fake(files);
    const Result<Census> census = take_census(fake.open(), *config::parse_config(""));
    ASSERT_TRUE(census);
    const std::vector<CpuTenant> tenants = cpu_tenants_of(census->discovered_containers);
    ASSERT_EQ(tenants.size(), 1U);
    EXPECT_EQ(tenants[0].tenant.request.has_value(), is_known);
    EXPECT_EQ(tenants[0].problem.find("use docker run --annotation") == std::string::npos, is_known);
  }
}

// CRI-O copies the annotations of a pod's user into the bundle of each of its containers.
TEST(Census, NamesAPodByWhatItsEngineWrites) {
  test::Files files = machine_with("/user.slice/user-1000.slice/session-2.scope");
  const std::string cgroup = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu1.slice";
  files["proc/50/cgroup"] = "0::" + cgroup + "/crio-" + kId + ".scope\n";
  files["run/b/config.json"] = R"({"linux":{},"annotations":{"io.kubernetes.cri.sandbox-name":"dcgm",)"
                               R"("io.kubernetes.cri.sandbox-namespace":"gpu-operator",)"
                               R"("io.kubernetes.cri.container-type":"sandbox",)"
                               R"("io.kubernetes.cri-o.ContainerType":"container","io.kubernetes.pod.name":"p",)"
                               R"("io.kubernetes.pod.namespace":"ml","io.kubernetes.container.name":"main"}})";
  const test::FakeHost fake(files);
  const Result<Census> census = take_census(fake.open(), *config::parse_config(""));
  ASSERT_TRUE(census);
  ASSERT_EQ(census->discovered_containers.size(), 1U);
  const container::Container& found = census->discovered_containers.front().container;
  ASSERT_TRUE(found.pod);
  EXPECT_EQ(found.pod->uid, "u1");
  EXPECT_EQ(found.pod->name_space + "/" + found.pod->name + "/" + found.pod->container, "ml/p/main");
  EXPECT_FALSE(found.pod->is_named_by_cri) << "another program wrote names too";
  EXPECT_FALSE(found.is_sandbox);
}

// kubelet moves containers to other CPUs while they run.
TEST(Census, ReadsTheCpusOfAKnownContainerAgain) {
  test::Files files = machine_with("/user.slice/user-1000.slice/session-2.scope");
  files["sys/devices/system/cpu/online"] = "0-7\n";
  files["proc/50/status"] += "Cpus_allowed_list:\t0-7\n";
  const test::FakeHost fake(files);
  const kernel::Host host = fake.open();
  const config::Config config = *config::parse_config("");
  const Result<Census> before = take_census(host, config);
  ASSERT_TRUE(before);
  ASSERT_EQ(before->discovered_containers.size(), 1U);
  EXPECT_FALSE(before->discovered_containers.front().container.has_exclusive_cpus);
  std::ofstream(fake.root() + "/proc/50/status") << "Name:\tapp\nNSpid:\t50\t1\nCpus_allowed_list:\t2-3\n";
  RuntimeVersions versions;
  const DiscoveredContainer& known = before->discovered_containers.front();
  const Result<Census> after =
      take_census(host, config, versions, {KnownContainer{known.container, *known.spec, known.spec_file}});
  ASSERT_TRUE(after);
  ASSERT_EQ(after->discovered_containers.size(), 1U);
  EXPECT_EQ(after->discovered_containers.front().container.cpus, "2-3");
  EXPECT_TRUE(after->discovered_containers.front().container.has_exclusive_cpus);
}

}  // namespace
}  // namespace hf::host
