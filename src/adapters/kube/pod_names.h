// PodNames: the names of a pod and of its container in the annotations of a container's spec.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/container/container.h"

namespace hf::kube {

// `engine`: "containerd" or "cri-o": then only the annotations count that this engine writes itself, because the other
// one's keys may be the pod's own annotations. Of another engine they count only as names. The container's name is ""
// where both engines' annotations are there and contradict each other, and then none was written by the CRI. The UID
// stays "": annotations prove none.
container::Pod pod_named_in(const std::map<std::string, std::string>& annotations, std::string_view engine);

}  // namespace hf::kube
