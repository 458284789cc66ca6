#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using report::Finding;
using report::Severity;

// Kernel: the root of a mount whose file was removed ends so in mountinfo.
bool is_deleted(const container::Mount& mount) { return mount.root.ends_with("//deleted"); }

}  // namespace

Findings find_other_library_version(const HostFacts& host, const ContainerFacts& facts) {
  const device::DriverState* driver = loaded_driver(host);
  if (driver == nullptr) {
    return {};
  }
  Findings findings;
  for (const container::Mount& mount : facts.mounts) {
    const std::optional<std::string> version = library_version_in(base_name(mount.point));
    if (!version || *version == driver->version) {
      continue;
    }
    Finding& finding = findings.emplace_back(
        finding_for(facts, "HF-122", Severity::critical,
                    "has driver libraries " + *version + ", the loaded driver is " + driver->version));
    finding.evidence.push_back("mount " + mount.point + " in the container, /proc/driver/nvidia/version on the host");
    finding.cure.emplace_back("start it again, so that it gets the libraries of the loaded driver");
  }
  return findings;
}

Findings find_deleted_driver_files(const HostFacts& host, const ContainerFacts& facts) {
  if (loaded_driver(host) == nullptr) {
    return {};
  }
  Finding finding =
      finding_for(facts, "HF-123", Severity::critical, "holds on to files of a driver installation that is gone");
  std::vector<std::string> deleted;
  for (const container::Mount& mount : facts.mounts) {
    if (!is_deleted(mount) || mount.root.find("nvidia") == std::string::npos) {
      continue;
    }
    deleted.push_back(mount.point);
    if (facts.entitlement.find(mount.point) != nullptr) {
      finding.nodes.push_back(mount.point);
    }
  }
  if (deleted.empty()) {
    return {};
  }
  finding.evidence.push_back("mounts of deleted files: " + join(deleted, ", "));
  finding.cure.emplace_back("start it again, after the driver's container");
  return {finding};
}

}  // namespace hf::doctor
