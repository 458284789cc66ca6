// SliceJson: ResourceSlices (resource.k8s.io/v1) as the API server sends and takes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/resource/slice.h"

namespace hf::kube {

std::string slices_path(const resource::Pool& pool);  // of the pool's list
std::string slice_path(const std::string& name);      // of one; "": where one is created
std::string node_path(const std::string& node);       // of the cluster node
std::string render_slice(const resource::Pool& pool, const resource::SliceStep& step);
// Those of the pool's driver and host, whatever else a server or a proxy sends.
Result<std::vector<resource::FoundSlice>> parse_slices(const resource::Pool& pool, std::string_view json);
Result<std::string> parse_uid(std::string_view json);  // of any object

// Why the API server refused: the message of its Status, or the body's first characters.
std::string refusal_in(unsigned status, std::string_view body);

}  // namespace hf::kube
