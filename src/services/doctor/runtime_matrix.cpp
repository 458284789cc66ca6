#include "services/doctor/runtime_matrix.h"

#include "core/base/version.h"

namespace hf::doctor {
namespace {

using container::CgroupDriver;

bool is_between(const std::optional<Version>& version, const char* first, const char* last) {
  return version && *version >= *parse_version(first) && *version <= *parse_version(last);
}

}  // namespace

std::optional<std::string> why_update_loses(const container::Container& container) {
  const std::optional<Version> version = parse_version(container.runtime.version);
  const std::string runtime = container.runtime.name + " " + container.runtime.version;
  const bool by_systemd = container.driver == CgroupDriver::systemd;
  if (container.runtime.name == "runc" && version && *version <= *parse_version("1.0.0-rc95")) {
    return runtime + " rewrites all device rules from the bundle at every update (runc before 1.0.0)";
  }
  if (container.runtime.name == "runc" && by_systemd) {
    return runtime + " with the systemd cgroup driver: an update makes systemd put the unit's own list in force";
  }
  if (container.runtime.name == "crun" && container.engine == "containerd" && container.pod) {
    return "containerd sends the bundle's device rules with every update, and " + runtime + " puts them in force";
  }
  if (container.runtime.name == "crun" && by_systemd && is_between(version, "1.18", "1.18.99")) {
    return runtime + " empties the unit's DeviceAllow at every update (crun 1.18)";
  }
  if (container.runtime.name == "crun" && container.engine == "podman" && version &&
      *version >= *parse_version("1.18") && !by_systemd) {
    return "podman 5 sends the bundle's device rules with every update, and " + runtime + " puts them in force";
  }
  if (container.runtime.name == "youki") {
    return "youki resets all device rules to its defaults at every update";
  }
  return std::nullopt;
}

bool leaves_out_unlinked_devices(const container::Runtime& runtime) {
  return runtime.name == "runc" && is_between(parse_version(runtime.version), "1.1.3", "1.1.6");
}

}  // namespace hf::doctor
