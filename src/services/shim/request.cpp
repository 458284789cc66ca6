#include "services/shim/request.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "adapters/kube/checkpoint.h"
#include "core/base/text.h"
#include "core/container/cgroup_name.h"

namespace hf::shim {
namespace {

void collect_mounts(const oci::Spec& spec, DeviceRequest& request) {
  nvidia::DeviceMounts mounts;
  for (const oci::SpecMount& mount : spec.mounts) {
    add_mount(mounts, mount.source, mount.destination);
  }
  request.cdi_names = std::exchange(mounts.visible.cdi_names, {});
  request.nvidia.visible = std::move(mounts.visible);
  if (!mounts.imex_channels.empty()) {
    request.nvidia.imex_channels = std::move(mounts.imex_channels);
  }
  std::ranges::move(mounts.mistakes, std::back_inserter(request.nvidia.mistakes));
  if (!request.nvidia.visible.text.empty()) {
    request.nvidia_description =
        "a mount below " + std::string(nvidia::kDeviceMounts) + " asks for " + request.nvidia.visible.text;
  }
}

void collect_environment(nvidia::VisibleDevices visible, DeviceRequest& request) {
  request.cdi_names = std::exchange(visible.cdi_names, {});
  request.is_by_environment = !request.cdi_names.empty();
  if (visible.requests_gpus()) {
    request.nvidia_description = "NVIDIA_VISIBLE_DEVICES=" + visible.text;
  }
  request.nvidia.visible = std::move(visible);
}

constexpr std::array<const char*, 4> kFeatures = {"NVIDIA_GDS", "NVIDIA_MOFED", "NVIDIA_GDRCOPY", "NVIDIA_NVSWITCH"};

void ignore(DeviceRequest& request, const std::string& variable, const std::string& why) {
  request.ignored.push_back(variable + " has no effect: " + why);
}

void collect_features(const oci::Spec& spec, DeviceRequest& request) {
  for (const char* name : kFeatures) {
    const std::string value = oci::environment_of(spec, name);
    if (value == "enabled") {
      request.features.emplace_back(name);
    } else if (!value.empty() && value != "disabled") {
      request.nvidia.mistakes.push_back(std::string(name) + "=" + value + ": valid: enabled, disabled");
    }
  }
}

// The features are variables of their own: they are ignored together with the request.
void ignore_rest(const oci::Spec& spec, DeviceRequest& request, const std::string& why) {
  for (const char* name : kFeatures) {
    if (oci::environment_of(spec, name) == "enabled") {
      ignore(request, std::string(name) + "=enabled", why);
    }
  }
  const std::string channels = oci::environment_of(spec, "NVIDIA_IMEX_CHANNELS");
  if (!channels.empty()) {
    ignore(request, "NVIDIA_IMEX_CHANNELS=" + channels, why);
  }
}

std::string why_not_trusted(config::Trust trust) {
  return trust == config::Trust::privileged ? "runtime.environment is 'privileged', and this container is not"
                                            : "runtime.environment is 'never'";
}

}  // namespace

Starter starter_named(std::string_view program, std::string_view bundle) {
  const std::string_view name = base_name(program);
  if (name.find("containerd-shim") == std::string_view::npos) {
    return name == "conmon" ? Starter::conmon : Starter::other;
  }
  return bundle.find("/k8s.io/") != std::string_view::npos ? Starter::kubelets_shim : Starter::containerd_shim;
}

bool is_of_pod(const oci::Spec& spec, Starter starter) {
  const std::string cgroup = container::cgroup_named_by(spec.cgroups_path);
  if (starter == Starter::kubelets_shim || (cgroup.empty() && !spec.cgroups_path.empty())) {
    return true;
  }
  const std::optional<container::ParsedCgroupName> name = container::parse_cgroup_name(cgroup);
  return (name && !name->pod_uid.empty()) || cgroup.find("kubepods") != std::string::npos;
}

bool believes_annotations(const oci::Spec& spec, Starter starter) {
  return starter == Starter::containerd_shim || is_of_pod(spec, starter);
}

DeviceRequest request_of(const oci::Spec& spec, const config::RuntimeSettings& settings, Starter starter) {
  DeviceRequest request;
  request.nvidia = nvidia::request_in(spec.environment, spec.is_privileged);
  nvidia::VisibleDevices by_environment = std::exchange(request.nvidia.visible, {});
  const bool trusts_environment = settings.environment == config::Trust::always ||
                                  settings.environment == config::Trust::allocated ||
                                  (settings.environment == config::Trust::privileged && spec.is_privileged);
  if (!trusts_environment) {
    request.nvidia.imex_channels.clear();
  }
  if (settings.reads_annotations && believes_annotations(spec, starter)) {
    request.cdi_names = kube::cdi_names_in(spec.annotations);
  }
  if (request.cdi_names.empty() && settings.reads_mounts) {
    collect_mounts(spec, request);
  }
  if (request.cdi_names.empty() && request.nvidia.visible.text.empty()) {
    if (trusts_environment) {
      collect_environment(std::move(by_environment), request);
    } else if (by_environment.requests_gpus() || !by_environment.cdi_names.empty()) {
      ignore(request, "NVIDIA_VISIBLE_DEVICES=" + by_environment.text, why_not_trusted(settings.environment));
    }
  }
  if (request.asks_nvidia() && trusts_environment) {
    collect_features(spec, request);
  } else if (request.asks_nvidia()) {
    ignore_rest(spec, request, why_not_trusted(settings.environment));
  } else if (!request.cdi_names.empty()) {
    ignore_rest(spec, request, "devices that are named as CDI devices come with what their specs list");
  }
  return request;
}

std::vector<std::string> path_prefixes_of(const device::DeviceClasses& classes) {
  std::vector<std::string> prefixes;
  for (const device::DeviceClass& entry : classes) {
    for (const device::NodePattern& pattern : entry.nodes) {
      prefixes.push_back(pattern.glob.substr(0, pattern.glob.find_first_of("*?[\\")));
    }
  }
  return prefixes;
}

bool may_ask(std::string_view text, std::span<const std::string> prefixes) {
  constexpr std::array<std::string_view, 9> kMarkers = {"NVIDIA_VISIBLE_DEVICES",
                                                        "CUDA_VERSION",
                                                        "nvidia-container-devices",
                                                        "cdi.k8s.io",
                                                        "/dev/nvidia",
                                                        "/dev/dri/",
                                                        "/dev/kfd",
                                                        "/dev/infiniband",
                                                        "/dev/accel"};
  // JSON may write characters and slashes as escapes. Engines do so only for <, > and &.
  constexpr std::array<std::string_view, 8> kEscapes = {"\\/",    "\\u002F", "\\u002f", "\\u004",
                                                        "\\u005", "\\u006",  "\\u007",  "\\u002e"};
  const auto is_in = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (std::ranges::any_of(kMarkers, is_in) || std::ranges::any_of(prefixes, is_in)) {
    return true;
  }
  return text.find('\\') != std::string_view::npos && std::ranges::any_of(kEscapes, is_in);
}

}  // namespace hf::shim
