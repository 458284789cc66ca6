#include "adapters/kube/pod_names.h"

namespace hf::kube {
namespace {

using Annotations = std::map<std::string, std::string>;

struct Keys {
  const char* pod;
  const char* name_space;
  const char* container;
};
constexpr Keys kContainerd = {"io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.sandbox-namespace",
                              "io.kubernetes.cri.container-name"};
// CRI-O copies kubelet's labels last, over what the pod's user wrote.
constexpr Keys kCrio = {"io.kubernetes.pod.name", "io.kubernetes.pod.namespace", "io.kubernetes.container.name"};

std::string value_of(const Annotations& annotations, const char* key) {
  const auto found = annotations.find(key);
  return found == annotations.end() ? std::string() : found->second;
}

container::Pod read_names(const Annotations& annotations, const Keys& keys) {
  container::Pod pod;
  pod.name = value_of(annotations, keys.pod);
  pod.name_space = value_of(annotations, keys.name_space);
  pod.container = value_of(annotations, keys.container);
  return pod;
}

bool contradict(const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; }

}  // namespace

container::Pod pod_named_in(const Annotations& annotations, std::string_view engine) {
  const container::Pod containerd = read_names(annotations, kContainerd);
  const container::Pod crio = read_names(annotations, kCrio);
  const bool is_known = engine == "containerd" || engine == "cri-o";
  container::Pod pod = engine == "cri-o" ? crio : containerd;
  if (!is_known) {
    pod.name = pod.name.empty() ? crio.name : pod.name;
    pod.name_space = pod.name_space.empty() ? crio.name_space : pod.name_space;
    pod.container = pod.container.empty() ? crio.container : pod.container;
  }
  const bool is_unclear = contradict(containerd.container, crio.container);
  if (is_unclear) {
    pod.container.clear();
  }
  pod.is_named_by_cri = is_known && !is_unclear && !contradict(containerd.name, crio.name) &&
                        !contradict(containerd.name_space, crio.name_space);
  return pod;
}

}  // namespace hf::kube
