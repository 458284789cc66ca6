#include "services/doctor/runtime_matrix.h"

#include "core/base/text.h"
#include "core/base/version.h"

namespace hf::doctor {
namespace {

using container::CgroupDriver;

constexpr Version kLastRuncThatRewritesAll{1, 0, 0, 95};  // 1.0.0-rc95
constexpr Version kCrun118{1, 18, 0};
constexpr Version kLastCrun118{1, 18, 99};

std::optional<Version> version_of(const container::Runtime& runtime) {
  return runtime.version ? parse_version(*runtime.version) : std::nullopt;
}

bool is_between(const std::optional<Version>& version, const Version& first, const Version& last) {
  return version && *version >= first && *version <= last;
}

std::optional<Loss> loss_by_runc(const container::Container& container) {
  using enum Loss::Kept;
  const std::optional<Version> version = version_of(*container.runtime);
  const std::string runtime = title_of(*container.runtime);
  const bool by_systemd = container.driver == CgroupDriver::systemd;
  if (version && *version <= kLastRuncThatRewritesAll) {
    return Loss{by_systemd ? unit : bundle,
                runtime + " rewrites all device rules from the bundle at every update (runc before 1.0.0)",
                {}};
  }
  if (by_systemd) {
    return Loss{unit,
                runtime + " with the systemd cgroup driver: an update makes systemd put the unit's own list in force",
                {}};
  }
  return std::nullopt;
}

std::optional<Loss> loss_by_crun(const container::Container& container) {
  using enum Loss::Kept;
  const std::optional<Version> version = version_of(*container.runtime);
  const std::string runtime = title_of(*container.runtime);
  const bool by_systemd = container.driver == CgroupDriver::systemd;
  if (by_systemd && is_between(version, kCrun118, kLastCrun118)) {
    return Loss{nothing, runtime + " empties the unit's DeviceAllow at every update (crun 1.18)",
                "install crun 1.19 or newer, then start the container again"};
  }
  if (container.engine == "containerd" && container.pod) {
    // NVIDIA's runtime edits the bundle on disk after containerd has recorded it.
    const bool is_edited = base_name(container.runtime->program).starts_with("nvidia-container-runtime");
    return Loss{is_edited ? nothing : bundle,
                "containerd sends its own record of the bundle's device rules with every update, and " + runtime +
                    " puts them in force",
                {}};
  }
  if (container.engine == "podman" && version && *version >= kCrun118 && !by_systemd) {
    return Loss{bundle,
                "podman 5 sends the bundle's device rules with every update, and " + runtime + " puts them in force",
                {}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Loss> how_update_loses(const container::Container& container) {
  if (is_run_by(container, "runc")) {
    return loss_by_runc(container);
  }
  if (is_run_by(container, "crun")) {
    return loss_by_crun(container);
  }
  if (is_run_by(container, "youki")) {
    return Loss{Loss::Kept::nothing, "youki resets all device rules to its defaults at every update",
                "use runc or crun"};
  }
  return std::nullopt;
}

bool leaves_out_unlinked_devices(const container::Container& container) {
  return is_run_by(container, "runc") && is_between(version_of(*container.runtime), Version{1, 1, 3}, Version{1, 1, 6});
}

}  // namespace hf::doctor
