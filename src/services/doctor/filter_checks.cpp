#include <algorithm>
#include <map>
#include <set>

#include "adapters/nvidia/request.h"
#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::Gate;
using device::Access;
using report::Finding;
using report::Severity;

constexpr Access kReadWrite = Access::read | Access::write;

// Devices that can be opened with O_RDWR although read or write alone is denied: the deny rule does not cover O_RDWR.
std::vector<std::string> slips_of(const device::Table& table) {
  std::vector<std::string> slips;
  for (const device::Kind kind : device::kKinds) {
    const device::Plane& plane = table.plane(kind);
    for (const device::Band& band : plane) {
      for (const device::Segment& segment : band.row) {
        const device::AccessSet set = segment.allowed;
        if (set.allows(kReadWrite) && !(set.allows(Access::read) && set.allows(Access::write))) {
          slips.push_back(to_string(device::Device{kind, band.first, segment.first}));
        }
      }
    }
  }
  return slips;
}

void report_slips(const ContainerFacts& facts, Findings& findings) {
  for (const Gate& gate : facts.observed.gates) {
    const std::vector<std::string> slips =
        gate.meaning && gate.is_own ? slips_of(*gate.meaning) : std::vector<std::string>();
    if (slips.empty()) {
      continue;
    }
    Finding finding = finding_for(facts, "HF-119", Severity::warning,
                                  "has a filter that means less than it says: a denied access passes with O_RDWR");
    finding.evidence.push_back(name_of(gate) + ": " + join(slips, ", ") +
                               " can be opened for reading and writing at once only");
    finding.cure.push_back("holdfast revoke " + shell_name_of(facts.container()) + " '" + slips.front() + " rw'");
    findings.push_back(std::move(finding));
  }
}

void report_program_count(const ContainerFacts& facts, Findings& findings) {
  constexpr int kNearTheLimit = 60;  // Kernel: 64 programs per cgroup at most (BPF_CGROUP_MAX_PROGS)
  std::map<std::string, int> counts;
  for (const Gate& gate : facts.observed.gates) {
    counts[gate.where] += gate.program ? 1 : 0;
  }
  for (const auto& [where, count] : counts) {
    if (count >= kNearTheLimit) {
      Finding finding =
          finding_for(facts, "HF-118", Severity::warning,
                      "has " + std::to_string(count) + " device programs on its cgroup; at 64 every update fails");
      finding.evidence.push_back(where + ": an old runc attaches one more at each update and removes none");
      finding.cure.emplace_back("start it again, with runc 1.0.0 or newer");
      findings.push_back(std::move(finding));
    }
  }
}

void report_place(const ContainerFacts& facts, Findings& findings) {
  const container::Container& it = facts.container();
  if (is_moved_up(facts)) {
    std::vector<const container::NodeState*> denied;
    for (const container::NodeState& node : facts.nodes) {
      if (node.diagnosis.failure == container::AccessFailure::cgroup_denies) {
        denied.push_back(&node);
      }
    }
    Finding finding = finding_for(facts, "HF-117", denied.empty() ? Severity::warning : Severity::critical,
                                  "is no longer in a devices cgroup of its own: systemd has moved it up");
    finding.evidence.push_back("/proc/" + std::to_string(it.init.value) + "/cgroup: devices:" + it.v1.at("devices") +
                               ", while the container is " + it.cgroup);
    if (!denied.empty()) {
      finding.evidence.push_back("there it cannot open " + list_paths(denied));
    }
    finding.cure.emplace_back("start it again; on cgroup v2 this does not happen");
    findings.push_back(std::move(finding));
  }
}

void report_unit(const ContainerFacts& facts, Findings& findings) {
  if (!facts.unit) {
    return;
  }
  const bool has_program = std::ranges::any_of(facts.observed.gates, [&facts](const Gate& gate) {
    return gate.program && gate.where.ends_with("/" + facts.container().scope);
  });
  if (!facts.unit->pinned.empty() && facts.observed_problem.empty() && !has_program) {
    Finding finding = finding_for(facts, "HF-121", Severity::warning,
                                  "runs without the device filter its unit names: systemd could not attach it");
    finding.evidence.push_back("BPFProgram=device:" + facts.unit->pinned.front() + " in " +
                               join(facts.unit->files, ", ") + ", but no program on the scope");
    finding.cure.emplace_back("ausearch -m avc -c systemd | audit2allow (SELinux denies systemd prog_run)");
    findings.push_back(std::move(finding));
  }
  // crun interprets minor 0 as "any" when it writes DeviceAllow.
  for (const std::string& entry : facts.unit->allow) {
    const std::string selector = entry.substr(0, entry.find(' '));
    const bool crun_wrote_it =
        facts.container().runtime.name == "crun" && facts.discovered->spec && !facts.spec_allows_all;
    if (!crun_wrote_it || !selector.starts_with("char-")) {
      continue;
    }
    constexpr std::uint32_t kNone = device::kLastNumber;
    const std::uint32_t major = parse_number<std::uint32_t>(std::string_view(selector).substr(5)).value_or(kNone);
    if (major == kNone) {
      continue;
    }
    const bool only_zero =
        facts.spec_table.allows({{device::Kind::character, major, 0}, Access::read}) &&
        !facts.spec_table.allows({{device::Kind::character, major, device::kLastMinor}, Access::read});
    if (only_zero) {
      Finding finding = finding_for(
          facts, "HF-120", Severity::note,
          "has a unit that allows every minor of " + std::to_string(major) + ", where the bundle has 0 only");
      finding.evidence.push_back("DeviceAllow=" + entry + " in " + join(facts.unit->files, ", ") +
                                 ": crun takes minor 0 for any; its own filter is still narrow");
      findings.push_back(std::move(finding));
    }
  }
}

bool is_restricted(const ContainerFacts& facts) {
  return std::ranges::any_of(facts.observed.gates, [](const Gate& gate) {
    return gate.meaning && !gate.shield && !gate.meaning->contains(device::Table::everything());
  });
}

// Reports units that the container may open without evidence. An unrestricted container is meant to open everything.
void report_excess(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  if (!is_restricted(facts) || facts.spec_allows_all || !facts.discovered->spec) {
    return;
  }
  std::vector<std::string> open;
  for (const device::Unit& unit : host.inventory.units) {
    const device::Node* node = unit.nodes.empty() ? nullptr : host.inventory.find(unit.nodes.front());
    if (node == nullptr || facts.entitlement.find(node->path) != nullptr || !node->numbers()) {
      continue;
    }
    if (judge(facts.observed, {*node->numbers(), kReadWrite}).kind == container::Answer::Kind::allow) {
      open.push_back(node->path + " (" + to_string(*node->numbers()) + ")");
    }
  }
  if (!open.empty()) {
    Finding finding =
        finding_for(facts, "HF-124", Severity::note, "may open devices that no trusted evidence gives it");
    finding.evidence.push_back(join(open, ", "));
    findings.push_back(std::move(finding));
  }
}

}  // namespace

bool is_moved_up(const ContainerFacts& facts) {
  const container::Container& it = facts.container();
  const auto devices = it.v1.find("devices");
  return devices != it.v1.end() && devices->second != "/" && it.cgroup != "/" &&
         !container::is_within(devices->second, it.cgroup) && container::is_within(it.cgroup, devices->second);
}

void check_filters(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  report_slips(facts, findings);
  report_program_count(facts, findings);
  report_place(facts, findings);
  report_unit(facts, findings);
  report_excess(host, facts, findings);
}

void check_libraries(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const device::DriverState* driver = host.inventory.state_of("nvidia");
  if (driver == nullptr || driver->version.empty()) {
    return;
  }
  constexpr std::string_view kName = "libnvidia-ml.so.";
  std::vector<std::string> deleted;
  for (const container::Mount& mount : facts.mounts) {
    const std::string name(base_name(mount.point));
    const bool is_library = name.starts_with(kName) && name.find('.', kName.size()) != std::string::npos;
    if (is_library && name.substr(kName.size()) != driver->version) {
      Finding finding = finding_for(
          facts, "HF-122", Severity::critical,
          "has driver libraries " + name.substr(kName.size()) + ", the loaded driver is " + driver->version);
      finding.evidence.push_back("mount " + mount.point + " in the container, /proc/driver/nvidia/version on the host");
      finding.cure.emplace_back("start it again, so that it gets the libraries of the loaded driver");
      findings.push_back(std::move(finding));
    }
    if (mount.root.ends_with("//deleted") && mount.root.find("nvidia") != std::string::npos) {
      deleted.push_back(mount.point);
    }
  }
  if (!deleted.empty()) {
    Finding finding =
        finding_for(facts, "HF-123", Severity::critical, "holds on to files of a driver installation that is gone");
    finding.evidence.push_back("mounts of deleted files: " + join(deleted, ", "));
    finding.cure.emplace_back("start it again, after the driver's container");
    findings.push_back(std::move(finding));
  }
}

void check_evidence(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const bool is_damaged =
      !facts.discovered->spec && !facts.discovered->spec_problem.empty() && !facts.container().bundle.empty();
  if (is_damaged) {
    Finding finding =
        finding_for(facts, "HF-129", Severity::warning, "has a bundle that cannot be believed: nothing in it counts");
    finding.evidence.push_back(facts.discovered->spec_problem);
    findings.push_back(std::move(finding));
  }
  if (!facts.ledger_problem.empty()) {
    Finding finding = finding_for(facts, "HF-129", Severity::warning,
                                  "has an entry in the ledger that cannot be believed: nothing in it counts");
    finding.evidence.push_back(facts.ledger_problem);
    findings.push_back(std::move(finding));
  }
  for (const container::Claim& claim : facts.entitlement.refused) {
    if (claim.source == container::Source::oci && !facts.container().inside) {
      continue;  // a node without a rule is no request; HF-127 reports it where the node is visible
    }
    const bool is_environment_request = claim.source == container::Source::environment && !facts.container().pod;
    Finding finding =
        is_environment_request
            ? finding_for(facts, "HF-126", Severity::warning,
                          "asks for a GPU in its environment, but its runtime has no part that gives it")
            : finding_for(facts, "HF-125", Severity::note, "asks for devices that no trusted source confirms");
    finding.evidence.push_back(to_string(claim.source) + " (" + claim.where + "): " + join(paths_of(claim), ", "));
    finding.evidence.push_back("not believed: " + claim.refused);
    if (is_environment_request) {
      finding.cure.emplace_back("run it with the NVIDIA runtime, with --gpus, or with a CDI device");
    }
    findings.push_back(std::move(finding));
  }
  std::vector<std::string> isolated;
  for (const container::NodeView& seen : facts.strangers) {
    if (seen.access && *seen.access != 0) {
      isolated.push_back(seen.path);
    }
  }
  if (!isolated.empty()) {
    Finding finding = finding_for(facts, "HF-127", Severity::note,
                                  "shows nodes of devices it is not owed; that it cannot open them is right");
    finding.evidence.push_back(join(isolated, ", "));
    findings.push_back(std::move(finding));
  }
  if (!facts.container().pod || !host.sources.checkpoint) {
    return;
  }
  for (const kube::Allocation& allocation : host.sources.checkpoint->allocations) {
    const bool is_ours =
        allocation.pod_uid == facts.container().pod->uid && allocation.container == facts.container().pod->container;
    if (!is_ours || !allocation.resource.starts_with("nvidia.com/") || host.inventory.units.empty()) {
      continue;
    }
    for (const std::string& id : allocation.ids) {
      const bool is_mig_unknown = id.starts_with("MIG-") && host.inventory.state_of("nvidia") != nullptr &&
                                  host.inventory.state_of("nvidia")->library_version.empty();
      if (nvidia::nodes_of(id, host.inventory).empty() && !is_mig_unknown) {
        Finding finding =
            finding_for(facts, "HF-128", Severity::critical,
                        "was allocated " + allocation.resource + " " + id + ", which this node does not have any more");
        finding.evidence.push_back(std::string(host::kCheckpointFile) + " has it; the driver does not");
        finding.cure.emplace_back("delete the pod, and restart the device plugin after a change of MIG layout or GPUs");
        findings.push_back(std::move(finding));
      }
    }
  }
}

}  // namespace hf::doctor
