#include "adapters/kube/pod_names.h"

#include <gtest/gtest.h>

namespace hf::kube {
namespace {

using Annotations = std::map<std::string, std::string>;

const Annotations kOfContainerd = {{"io.kubernetes.cri.sandbox-name", "p"},
                                   {"io.kubernetes.cri.sandbox-namespace", "ml"},
                                   {"io.kubernetes.cri.container-name", "main"}};
const Annotations kOfCrio = {
    {"io.kubernetes.pod.name", "p"}, {"io.kubernetes.pod.namespace", "ml"}, {"io.kubernetes.container.name", "main"}};

Annotations with(Annotations annotations, const std::string& key, const std::string& value) {
  annotations[key] = value;
  return annotations;
}

std::string describe(const Annotations& annotations, std::string_view engine) {
  const container::Pod pod = pod_named_in(annotations, engine);
  return pod.name_space + "/" + pod.name + "/" + pod.container + (pod.is_named_by_cri ? " by the CRI" : "");
}

TEST(PodNamedIn, TakesWhatTheEngineItselfWrites) {
  EXPECT_EQ(describe(kOfContainerd, "containerd"), "ml/p/main by the CRI");
  EXPECT_EQ(describe(kOfCrio, "cri-o"), "ml/p/main by the CRI");
  EXPECT_EQ(describe(kOfContainerd, "podman"), "ml/p/main");
  EXPECT_EQ(describe(kOfCrio, ""), "ml/p/main");
  EXPECT_EQ(describe({}, ""), "//");
}

TEST(PodNamedIn, IgnoresTheOtherEnginesAnnotationsWhichAPodMaySet) {
  EXPECT_EQ(describe(kOfContainerd, "cri-o"), "// by the CRI") << "nothing that a trust rule could fit";
  EXPECT_EQ(describe(kOfCrio, "containerd"), "// by the CRI");
  const Annotations spoofed = with(kOfCrio, "io.kubernetes.cri.sandbox-namespace", "gpu-operator");
  EXPECT_EQ(describe(spoofed, "cri-o"), "ml/p/main");
  EXPECT_EQ(describe(with(kOfCrio, "io.kubernetes.cri.sandbox-name", "dcgm"), "cri-o"), "ml/p/main");
  EXPECT_EQ(describe(with(kOfContainerd, "io.kubernetes.pod.namespace", "gpu-operator"), "containerd"), "ml/p/main");
}

TEST(PodNamedIn, HasNoContainerWhereAnnotationsContradictEachOther) {
  for (const char* engine : {"containerd", "cri-o", ""}) {
    Annotations both = kOfContainerd;
    both.insert(kOfCrio.begin(), kOfCrio.end());
    EXPECT_EQ(pod_named_in(both, engine).container, "main") << engine;
    both["io.kubernetes.container.name"] = "gpu";
    EXPECT_EQ(describe(both, engine), "ml/p/") << engine;
  }
}

}  // namespace
}  // namespace hf::kube
