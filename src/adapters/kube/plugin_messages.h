// Messages of kubelet's device plugin API as values of ours.
#pragma once

#include <string>
#include <vector>

#include "core/resource/allocation.h"
#include "core/resource/offer.h"
#include "core/resource/preference.h"

namespace v1beta1 {
class AllocateRequest;
class AllocateResponse;
class ListAndWatchResponse;
class PreferredAllocationRequest;
}  // namespace v1beta1

namespace hf::kube {

inline constexpr const char* kPluginApi = "v1beta1";

v1beta1::ListAndWatchResponse list_of(const resource::Offer& offer);
std::vector<std::vector<std::string>> ids_in(const v1beta1::AllocateRequest& request);  // of each container
void add_to(v1beta1::AllocateResponse& response, const resource::Allocation& allocation);
std::vector<resource::Choice> choices_in(const v1beta1::PreferredAllocationRequest& request);  // of each container

}  // namespace hf::kube
