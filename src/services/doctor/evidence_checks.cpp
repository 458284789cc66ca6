#include <algorithm>

#include "adapters/nvidia/resolve.h"
#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::Claim;
using container::Source;
using report::Finding;
using report::Severity;

// A request for a GPU that the runtime would have to carry out. In a pod only kubelet's allocation counts.
bool is_for_runtime(const ContainerFacts& facts, const Claim& claim) {
  return claim.source == Source::environment && !facts.container().pod;
}

// A node in the bundle without a rule is no request; HF-127 reports it where the node is visible.
bool is_request(const ContainerFacts& facts, const Claim& claim) {
  return claim.source != Source::oci || facts.container().inside;
}

void describe(Finding& finding, const Claim& claim) {
  finding.nodes = paths_of(claim);
  finding.evidence.push_back(to_string(claim.source) + " (" + claim.where + "): " + join(finding.nodes, ", "));
  finding.evidence.push_back("not believed: " + claim.refused);
}

// The driver's library alone knows MIG devices.
bool is_unknowable(const std::string& id, const device::Inventory& inventory) {
  const device::DriverState* driver = inventory.state_of("nvidia");
  return id.starts_with("MIG-") && driver != nullptr && driver->library_version.empty();
}

std::vector<std::string> ways_to_get_gpus(const container::Container& container) {
  if (container.engine == "docker") {
    return {
        "start it again with the runtime holdfast: docker run --runtime holdfast --gpus all … (once before: holdfast "
        "setup docker)"};
  }
  if (container.engine == "podman") {
    return {
        "start it again with a CDI device: podman run --device nvidia.com/gpu=all … (once before: holdfast cdi "
        "generate --file /etc/cdi/nvidia.yaml)"};
  }
  return {"start it again with holdfast-runtime in place of runc, or with a CDI device such as nvidia.com/gpu=all"};
}

std::vector<std::string> ways_to_confirm(const container::Container& container) {
  if (!container.pod) {
    return ways_to_get_gpus(container);
  }
  return {"request it in the pod's resources, for example nvidia.com/gpu: 1",
          "vouch for a monitoring pod that has no allocation: trust: in /etc/holdfast/config.yaml, with its namespace "
          "and name"};
}

bool is_of(const kube::Allocation& allocation, const container::Pod& pod) {
  return allocation.pod_uid == pod.uid && allocation.container == pod.container;
}

}  // namespace

Findings find_unconfirmed_requests(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings;
  for (const Claim& claim : facts.entitlement.refused) {
    if (is_request(facts, claim) && !is_for_runtime(facts, claim)) {
      Finding& finding = findings.emplace_back(
          finding_for(facts, "HF-125", Severity::note, "asks for devices that no trusted source confirms"));
      describe(finding, claim);
      finding.cure = ways_to_confirm(facts.container());
    }
  }
  return findings;
}

Findings find_unserved_requests(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings;
  for (const Claim& claim : facts.entitlement.refused) {
    if (!is_for_runtime(facts, claim)) {
      continue;
    }
    Finding& finding = findings.emplace_back(
        finding_for(facts, "HF-126", Severity::warning,
                    "asks for a GPU in its environment, but its runtime has no part that gives it"));
    describe(finding, claim);
    finding.cure = ways_to_get_gpus(facts.container());
  }
  return findings;
}

Findings find_nodes_not_owed(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Finding finding = finding_for(facts, "HF-127", Severity::note,
                                "shows nodes of devices it is not owed; that it cannot open them is right");
  for (const container::NodeView& seen : facts.not_owed) {
    if (seen.access && *seen.access != 0) {
      finding.nodes.push_back(seen.path);
    }
  }
  if (finding.nodes.empty()) {
    return {};
  }
  finding.evidence.push_back(join(finding.nodes, ", "));
  return {finding};
}

Findings find_gone_allocations(const HostFacts& host, const ContainerFacts& facts) {
  const std::optional<container::Pod>& pod = facts.container().pod;
  if (!pod || !host.sources.checkpoint || host.inventory.units.empty()) {
    return {};
  }
  Findings findings;
  for (const kube::Allocation& allocation : host.sources.checkpoint->allocations) {
    if (!is_of(allocation, *pod) || !allocation.resource.starts_with("nvidia.com/")) {
      continue;
    }
    for (const std::string& id : allocation.ids) {
      if (!nvidia::nodes_of(id, host.inventory).empty() || is_unknowable(id, host.inventory)) {
        continue;
      }
      Finding& finding = findings.emplace_back(
          finding_for(facts, "HF-128", Severity::critical,
                      "was allocated " + allocation.resource + " " + id + ", which this node does not have any more"));
      finding.evidence.push_back(host::checkpoint_file(host.sources) + " has it; the driver does not");
      finding.cure.emplace_back("delete the pod, and restart the device plugin after a change of MIG layout or GPUs");
    }
  }
  return findings;
}

Findings find_untrusted_records(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings;
  const host::DiscoveredContainer& discovered = *facts.discovered;
  if (!discovered.spec && !discovered.spec_problem.empty() && facts.container().bundle) {
    Finding& finding =
        findings.emplace_back(finding_for(facts, "HF-129", Severity::warning, "has a bundle that cannot be believed"));
    finding.because = "nothing in it counts";
    finding.evidence.push_back(discovered.spec_problem);
  }
  if (!facts.ledger_problem.empty()) {
    Finding& finding = findings.emplace_back(
        finding_for(facts, "HF-129", Severity::warning, "has an entry in the ledger that cannot be believed"));
    finding.because = "nothing in it counts";
    finding.evidence.push_back(facts.ledger_problem);
  }
  return findings;
}

}  // namespace hf::doctor
