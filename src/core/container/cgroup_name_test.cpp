#include "core/container/cgroup_name.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace hf::container {
namespace {

const std::string kId(64, 'a');
const std::string kInner(64, 'b');

struct Case {
  std::string path;
  std::string engine;
  std::string pod_uid;
  CgroupDriver driver;
  std::string cgroup;
};

TEST(ParsedCgroupName, IsParsedForBothDriversOfEveryEngine) {
  const std::string slices = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice/";
  const auto systemd = CgroupDriver::systemd;
  const auto cgroupfs = CgroupDriver::cgroupfs;
  const std::vector<Case> cases = {
      {"/docker/" + kId, "docker", "", cgroupfs, "/docker/" + kId},
      {"/system.slice/docker-" + kId + ".scope", "docker", "", systemd, "/system.slice/docker-" + kId + ".scope"},
      {"/machine.slice/libpod-" + kId + ".scope/container", "podman", "", systemd,
       "/machine.slice/libpod-" + kId + ".scope"},
      {"/libpod_parent/libpod-" + kId, "podman", "", cgroupfs, "/libpod_parent/libpod-" + kId},
      {slices + "cri-containerd-" + kId + ".scope", "containerd", "12-34", systemd,
       slices + "cri-containerd-" + kId + ".scope"},
      {slices + "crio-" + kId + ".scope", "cri-o", "12-34", systemd, slices + "crio-" + kId + ".scope"},
      {"/kubepods/burstable/pod12-34/" + kId, "", "12-34", cgroupfs, "/kubepods/burstable/pod12-34/" + kId},
      {"/kubepods/pod12-34/crio-" + kId, "cri-o", "12-34", cgroupfs, "/kubepods/pod12-34/crio-" + kId},
      {"/system.slice/containerd.service/kubepods-besteffort-pod12_34.slice:cri-containerd:" + kId, "", "", cgroupfs,
       ""},
  };
  for (const Case& entry : cases) {
    const std::optional<ParsedCgroupName> name = parse_cgroup_name(entry.path);
    if (entry.cgroup.empty()) {
      continue;  // a systemd scope passed to a cgroupfs runtime: any result is fine, a crash is not
    }
    ASSERT_TRUE(name) << entry.path;
    EXPECT_EQ(name->id, kId) << entry.path;
    EXPECT_EQ(name->engine, entry.engine) << entry.path;
    EXPECT_TRUE(name->engine.empty() || std::ranges::count(kEngineNames, name->engine) == 1) << name->engine;
    EXPECT_EQ(name->pod_uid, entry.pod_uid) << entry.path;
    EXPECT_EQ(name->driver, entry.driver) << entry.path;
    EXPECT_EQ(name->cgroup, entry.cgroup) << entry.path;
  }
}

TEST(ParsedCgroupName, NamesTheInnermostContainer) {
  const std::optional<ParsedCgroupName> name = parse_cgroup_name("/docker/" + kId + "/docker/" + kInner);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->id, kInner);
}

TEST(ParsedCgroupName, OfLxcHasTheContainerNameAsId) {
  EXPECT_EQ(parse_cgroup_name("/lxc.payload.web/init.scope")->id, "web");
  EXPECT_EQ(parse_cgroup_name("/lxc/101")->id, "101");
}

TEST(CgroupsPath, NamesACgroupInBothForms) {
  EXPECT_EQ(cgroup_named_by("/docker/x"), "/docker/x");
  EXPECT_EQ(cgroup_named_by("system.slice:docker:x"), "/system.slice/docker-x.scope");
  EXPECT_EQ(cgroup_named_by(":docker:x"), "/system.slice/docker-x.scope");
  EXPECT_EQ(cgroup_named_by("kubepods-burstable-pod1_2.slice:cri-containerd:x"),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-x.scope");
  EXPECT_EQ(cgroup_named_by("-.slice::x"), "/x.scope");
  for (const char* text : {"", "relative", "a:b", "a:b:", "/a/../b"}) {
    EXPECT_EQ(cgroup_named_by(text), "") << text;
  }
}

TEST(CgroupOfParent, IsAPathOrASlice) {
  EXPECT_EQ(cgroup_of_parent("/kubepods/pod1-2"), "/kubepods/pod1-2");
  EXPECT_EQ(cgroup_of_parent("kubepods-pod1_2.slice"), "/kubepods.slice/kubepods-pod1_2.slice");
  for (const char* text : {"", "relative", "/a/../b", "a/b.slice"}) {
    EXPECT_EQ(cgroup_of_parent(text), "") << text;
  }
}

TEST(PodUidIn, IsOfKubeletsCgroupsAlone) {
  EXPECT_EQ(pod_uid_in("/kubepods/burstable/pod12-34"), "12-34");
  EXPECT_EQ(pod_uid_in("/kubepods.slice/kubepods-pod12_34.slice"), "12-34");
  EXPECT_EQ(pod_uid_in("kubepods-besteffort-pod12_34.slice"), "12-34");
  for (const char* path : {"", "/", "/k8s.io", "/pod12-34", "/kubepods", "/kubepods/pod", "/kubepods/pod12/x"}) {
    EXPECT_EQ(pod_uid_in(path), "") << path;
  }
}

TEST(ParsedCgroupName, IsAbsentForPathsWithoutAContainer) {
  for (const std::string& path :
       {std::string("/"), std::string(""), std::string("/system.slice/ssh.service"), "/libpod-conmon-" + kId + ".scope",
        "/x" + kId, std::string("/user.slice/user-1000.slice/session-2.scope"), std::string("/kubepods/pod12-34"),
        "/docker/" + kId.substr(1)}) {
    EXPECT_FALSE(parse_cgroup_name(path)) << path;
  }
}

// kind starts kubelet with --cgroup-root=/kubelet, and systemd puts a slice's parents into its name.
TEST(ParsedCgroupName, FindsThePodBelowAnotherCgroupRoot) {
  EXPECT_EQ(parse_cgroup_name("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                              "kubelet-kubepods-burstable-pod12_34.slice/cri-containerd-" +
                              kId + ".scope")
                ->pod_uid,
            "12-34");
}

// A process that may create cgroups in its container could otherwise claim the pod of another one.
TEST(ParsedCgroupName, IgnoresPodNamesWithinAContainer) {
  EXPECT_NE(parse_cgroup_name("/kubepods/podmine/" + kId + "/podvictim/" + kInner)->pod_uid, "victim");
}

}  // namespace
}  // namespace hf::container
