#include "adapters/kube/plugin_messages.h"

#include "adapters/kube/device_plugin.pb.h"

namespace hf::kube {

v1beta1::ListAndWatchResponse list_of(const resource::Offer& offer) {
  v1beta1::ListAndWatchResponse response;
  for (const resource::OfferedDevice& device : offer.devices) {
    v1beta1::Device& listed = *response.add_devices();
    listed.set_id(device.id);
    listed.set_health(device.is_healthy() ? "Healthy" : "Unhealthy");
    if (device.numa) {
      listed.mutable_topology()->add_nodes()->set_id(*device.numa);
    }
  }
  return response;
}

std::vector<std::vector<std::string>> ids_in(const v1beta1::AllocateRequest& request) {
  std::vector<std::vector<std::string>> all;
  for (const v1beta1::ContainerAllocateRequest& container : request.container_requests()) {
    all.emplace_back(container.devices_ids().begin(), container.devices_ids().end());
  }
  return all;
}

void add_to(v1beta1::AllocateResponse& response, const resource::Allocation& allocation) {
  v1beta1::ContainerAllocateResponse& container = *response.add_container_responses();
  container.mutable_envs()->insert(allocation.environment.begin(), allocation.environment.end());
  container.mutable_annotations()->insert(allocation.annotations.begin(), allocation.annotations.end());
  for (const resource::AllocatedMount& mount : allocation.mounts) {
    v1beta1::Mount& added = *container.add_mounts();
    added.set_container_path(mount.container_path);
    added.set_host_path(mount.host_path);
    added.set_read_only(mount.is_read_only);
  }
  for (const std::string& path : allocation.nodes) {
    v1beta1::DeviceSpec& added = *container.add_devices();
    added.set_container_path(path);
    added.set_host_path(path);
    added.set_permissions("rw");
  }
  for (const std::string& name : allocation.cdi_devices) {
    container.add_cdi_devices()->set_name(name);
  }
}

std::vector<resource::Choice> choices_in(const v1beta1::PreferredAllocationRequest& request) {
  std::vector<resource::Choice> all;
  for (const v1beta1::ContainerPreferredAllocationRequest& container : request.container_requests()) {
    resource::Choice& choice = all.emplace_back();
    choice.available.assign(container.available_deviceids().begin(), container.available_deviceids().end());
    choice.must_include.assign(container.must_include_deviceids().begin(), container.must_include_deviceids().end());
    choice.count = container.allocation_size() > 0 ? std::size_t(container.allocation_size()) : 0;
  }
  return all;
}

}  // namespace hf::kube
