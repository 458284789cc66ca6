#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/report/verdict.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::Gate;
using device::Access;
using report::Finding;
using report::Severity;

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

// The major of "char-195 rw", with which a unit allows every minor; absent for other entries of DeviceAllow.
std::optional<std::uint32_t> parse_whole_major(std::string_view entry) {
  constexpr std::string_view kPrefix = "char-";
  const std::string_view selector = entry.substr(0, entry.find(' '));
  return selector.starts_with(kPrefix) ? parse_number<std::uint32_t>(selector.substr(kPrefix.size())) : std::nullopt;
}

bool is_restricted(const ContainerFacts& facts) {
  return std::ranges::any_of(facts.observed.gates, [](const Gate& gate) {
    return gate.meaning && !gate.shield && !gate.meaning->contains(device::Table::everything());
  });
}

// The nodes of units that the container may open without evidence.
std::vector<const device::Node*> open_without_evidence(const HostFacts& host, const ContainerFacts& facts) {
  std::vector<const device::Node*> open;
  for (const device::Unit& unit : host.inventory.units) {
    const device::Node* node = unit.nodes.empty() ? nullptr : host.inventory.find(unit.nodes.front());
    if (node == nullptr || facts.entitlement.find(node->path) != nullptr || !node->numbers()) {
      continue;
    }
    if (judge(facts.observed, {*node->numbers(), kReadWrite}).kind == container::Answer::Kind::allow) {
      open.push_back(node);
    }
  }
  return open;
}

}  // namespace

Findings find_moved_container(const HostFacts& /*host*/, const ContainerFacts& facts) {
  const container::Container& it = facts.container();
  if (!is_moved_up(it)) {
    return {};
  }
  const Nodes denied = nodes_with(facts, container::AccessFailure::cgroup_denies);
  Finding finding = finding_about(facts, "HF-117", denied, "is no longer in a devices cgroup of its own");
  finding.because = "systemd has moved it up";
  finding.severity = denied.empty() ? Severity::warning : Severity::critical;
  finding.evidence.push_back("/proc/" + std::to_string(it.init.value) + "/cgroup: devices:" + it.v1.at("devices") +
                             ", while the container is " + it.cgroup);
  if (!denied.empty()) {
    finding.evidence.push_back("there it cannot open " + list_paths(denied));
  }
  finding.cure.emplace_back("start it again; on cgroup v2 this does not happen");
  return {finding};
}

Findings find_too_many_programs(const HostFacts& /*host*/, const ContainerFacts& facts) {
  constexpr std::size_t kNearTheLimit = 60;  // Kernel: 64 programs per cgroup at most (BPF_CGROUP_MAX_PROGS)
  std::map<std::optional<container::CgroupPath>, std::vector<const Gate*>> programs;
  for (const Gate& gate : facts.observed.gates) {
    if (gate.program) {
      programs[gate.cgroup].push_back(&gate);
    }
  }
  Findings findings;
  for (const auto& [cgroup, gates] : programs) {
    if (gates.size() < kNearTheLimit) {
      continue;
    }
    Finding& finding = findings.emplace_back(finding_for(
        facts, "HF-118", Severity::warning,
        "has " + std::to_string(gates.size()) + " device programs on its cgroup; at 64 every update fails"));
    finding.evidence.push_back(gates.front()->where +
                               ": an old runc attaches one more at each update and removes none");
    finding.cure.emplace_back("start it again, with runc 1.0.0 or newer");
  }
  return findings;
}

Findings find_ineffective_denials(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings;
  for (const Gate& gate : facts.observed.gates) {
    const std::vector<std::string> slips =
        gate.meaning && gate.is_own ? slips_of(*gate.meaning) : std::vector<std::string>();
    if (slips.empty()) {
      continue;
    }
    Finding& finding = findings.emplace_back(
        finding_for(facts, "HF-119", Severity::warning, "has a filter that means less than it says"));
    finding.because = "a denied access passes with O_RDWR";
    finding.evidence.push_back(name_of(gate) + ": " + join(slips, ", ") +
                               " can be opened for reading and writing at once only");
    finding.cure.push_back("holdfast revoke " + report::argument_of(facts.container()) + " '" + slips.front() + " rw'");
  }
  return findings;
}

// crun interprets minor 0 as "any" when it writes DeviceAllow.
Findings find_wider_unit(const HostFacts& /*host*/, const ContainerFacts& facts) {
  if (!facts.unit || !is_run_by(facts.container(), "crun") || !facts.discovered->spec || facts.spec_allows_all) {
    return {};
  }
  const auto bundle_allows = [&facts](std::uint32_t major, std::uint32_t minor) {
    return facts.spec_table.allows({{device::Kind::character, major, minor}, Access::read});
  };
  Findings findings;
  for (const std::string& entry : facts.unit->allow) {
    const std::optional<std::uint32_t> major = parse_whole_major(entry);
    if (!major || !bundle_allows(*major, 0) || bundle_allows(*major, device::kLastMinor)) {
      continue;
    }
    Finding& finding = findings.emplace_back(finding_for(
        facts, "HF-120", Severity::note,
        "has a unit that allows every minor of " + std::to_string(*major) + ", where the bundle has 0 only"));
    finding.evidence.push_back("DeviceAllow=" + entry + " in " + join(facts.unit->files, ", ") +
                               ": crun takes minor 0 for any; its own filter is still narrow");
  }
  return findings;
}

Findings find_unattached_program(const HostFacts& /*host*/, const ContainerFacts& facts) {
  if (!facts.unit || facts.unit->pinned.empty() || !facts.observed_problem.empty()) {
    return {};
  }
  const bool has_program = std::ranges::any_of(facts.observed.gates, [&facts](const Gate& gate) {
    return gate.program && gate.cgroup && base_name(gate.cgroup->text) == facts.container().unit;
  });
  if (has_program) {
    return {};
  }
  Finding finding = finding_for(facts, "HF-121", Severity::warning, "runs without the device filter its unit names");
  finding.because = "systemd could not attach it";
  finding.evidence.push_back("BPFProgram=device:" + facts.unit->pinned.front() + " in " +
                             join(facts.unit->files, ", ") + ", but no program on the scope");
  finding.cure.emplace_back("ausearch -m avc -c systemd | audit2allow (SELinux denies systemd prog_run)");
  return {finding};
}

// An unrestricted container is meant to open everything.
Findings find_access_without_evidence(const HostFacts& host, const ContainerFacts& facts) {
  if (!is_restricted(facts) || facts.spec_allows_all || !facts.discovered->spec) {
    return {};
  }
  const std::vector<const device::Node*> open = open_without_evidence(host, facts);
  if (open.empty()) {
    return {};
  }
  Finding finding = finding_for(facts, "HF-124", Severity::note, "may open devices that no trusted evidence gives it");
  std::vector<std::string> named;
  for (const device::Node* node : open) {
    named.push_back(node->path + " (" + to_string(*node->numbers()) + ")");
    finding.nodes.push_back(node->path);
  }
  finding.evidence.push_back(join(named, ", "));
  return {finding};
}

}  // namespace hf::doctor
