#include "services/shim/facts.h"

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::shim {
namespace {

const std::string kId(64, 'a');
const std::string kOfCrio = "kubepods-besteffort-pod1.slice:crio:" + kId;
const std::string kOfPodman = "kubepods-besteffort-pod1.slice:libpod:" + kId;
const std::string kOfContainerd = "kubepods-besteffort-pod1.slice:cri-containerd:" + kId;
constexpr const char* kNamedByCrio = R"("io.kubernetes.pod.name":"p","io.kubernetes.pod.namespace":"monitoring")";
constexpr const char* kNamedByContainerd =
    R"("io.kubernetes.cri.sandbox-name":"p","io.kubernetes.cri.sandbox-namespace":"monitoring")";

// A rule of the config trusts pods in the namespace "monitoring".
bool is_trusted(const std::string& cgroup, Starter starter, const std::string& annotations) {
  const test::FakeHost fake({{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}});
  const oci::Spec spec =
      *oci::parse_spec(R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":{"cgroupsPath":")" + cgroup +
                       R"("},"annotations":{)" + annotations + "}}");
  const config::Config config = *config::parse_config("trust: [{namespace: monitoring}]");
  const std::optional<Facts> facts = read_facts(fake.open(), config, {"/bundle", spec, "/us", {}, starter});
  return facts && !facts->pod;
}

TEST(TrustAtCreate, FollowsTheNamesThatTheEngineWrote) {
  EXPECT_TRUE(is_trusted(kOfContainerd, Starter::kubelets_shim, kNamedByContainerd));
  EXPECT_TRUE(is_trusted(kOfCrio, Starter::conmon, kNamedByCrio));
}

TEST(TrustAtCreate, IsNotGivenToAnnotationsOfThePod) {
  const std::string other = R"("io.kubernetes.pod.name":"p","io.kubernetes.pod.namespace":"default",)";
  EXPECT_FALSE(is_trusted(kOfCrio, Starter::conmon, other + kNamedByContainerd)) << "CRI-O copies them";
  EXPECT_FALSE(is_trusted(kOfCrio, Starter::conmon, kNamedByContainerd));
  EXPECT_FALSE(is_trusted(kOfContainerd, Starter::kubelets_shim, kNamedByCrio));
}

TEST(TrustAtCreate, NeedsAnEngineThatIsKnown) {
  EXPECT_FALSE(is_trusted(kOfCrio, Starter::other, kNamedByCrio));
  EXPECT_FALSE(is_trusted(kOfPodman, Starter::conmon, kNamedByCrio)) << "podman lets images bring annotations";
}

}  // namespace
}  // namespace hf::shim
