#include "services/doctor/doctor.h"

#include <algorithm>

#include "adapters/journal/plugin_status.h"
#include "adapters/journal/status.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "host/inventory.h"
#include "host/target.h"
#include "kernel/process/process.h"
#include "services/doctor/checks.h"

namespace hf::doctor {
namespace {

using report::Finding;

struct ExaminedContainer {
  ContainerFacts facts;
  ContainerDiagnosis diagnosis;
};

class ContainerExaminer {
 public:
  ContainerExaminer(host::OpenHost& opened, const HostFacts& host) : opened_(opened), host_(host) {}

  ExaminedContainer examine(const host::DiscoveredContainer& discovered, kernel::Depth depth) {
    ContainerFacts facts = read_container_facts(opened_, host_, discovered, depth);
    const bool denied = std::ranges::any_of(facts.nodes, [](const container::NodeState& node) {
      return node.diagnosis.failure == container::AccessFailure::cgroup_denies;
    });
    if (denied) {
      facts.holders = holders();
    }
    ContainerDiagnosis diagnosis = check_container(host_, facts);
    return {std::move(facts), std::move(diagnosis)};
  }

 private:
  // This reads every open file on the host, so it is done only once a container has lost a device.
  const kernel::Holders& holders() {
    if (!holders_) {
      holders_ = kernel::read_holders(opened_.host);
    }
    return *holders_;
  }

  host::OpenHost& opened_;
  const HostFacts& host_;
  std::optional<kernel::Holders> holders_;
};

// Matches the node's path, its file name, its class, or the notation of `holdfast ps`: "nvidia:0".
bool is_named(const container::OwedNode& node, const std::string& wanted) {
  const std::string name(base_name(node.path));
  const std::size_t colon = wanted.find(':');
  const bool by_number = colon != std::string::npos && wanted.substr(0, colon) == node.device_class &&
                         (name == wanted.substr(colon + 1) || name.ends_with(wanted.substr(colon + 1))) &&
                         name.find_last_not_of("0123456789") + 1 + wanted.size() - colon - 1 == name.size();
  return node.path == wanted || name == wanted || node.device_class == wanted || by_number;
}

std::vector<std::string> names_of(const std::vector<container::NodeState>& nodes) {
  std::vector<std::string> names;
  for (const container::NodeState& node : nodes) {
    names.insert(names.end(), {node.owed->path, std::string(base_name(node.owed->path)), node.owed->device_class});
  }
  return names;
}

bool is_about_any(const Finding& finding, const std::vector<container::NodeState>& nodes) {
  return std::ranges::any_of(nodes, [&finding](const container::NodeState& node) {
    return std::ranges::find(finding.nodes, node.owed->path) != finding.nodes.end();
  });
}

void sort_by_severity(Findings& findings) {
  std::ranges::sort(findings, [](const Finding& a, const Finding& b) {
    const auto key = [](const Finding& finding) {
      return std::tuple(-int(finding.severity), !finding.container.empty(), finding.subject, finding.code,
                        sentence_of(finding));
    };
    return key(a) < key(b);
  });
}

std::vector<std::string> codes_of(const Findings& findings) {
  std::vector<std::string> codes;
  for (const Finding& finding : findings) {
    if (std::ranges::find(codes, finding.code) == codes.end()) {
      codes.push_back(finding.code);
    }
  }
  return codes;
}

report::ContainerLine line_of(const ExaminedContainer& examined) {
  const auto& [facts, diagnosis] = examined;
  return {facts.container(), facts.entitlement, diagnosis.state, codes_of(diagnosis.findings), diagnosis.shield};
}

// With all nodes and findings.
report::Explanation explain_all(const ExaminedContainer& examined) {
  const ContainerFacts& facts = examined.facts;
  report::Explanation explanation;
  explanation.line = line_of(examined);
  explanation.claims = facts.claims;
  explanation.gates_problem = facts.observed_problem;
  explanation.gates = facts.observed.gates;
  explanation.nodes = facts.nodes;
  if (facts.unit) {
    explanation.unit = facts.container().unit.value_or("");
    explanation.unit_allows = facts.unit->allow;
  }
  for (const container::NodeView& seen : facts.not_owed) {
    explanation.not_owed.push_back(seen.path);
  }
  explanation.findings = examined.diagnosis.findings;
  sort_by_severity(explanation.findings);
  return explanation;
}

std::vector<std::string> notes_of(const HostFacts& host, const host::Census& census) {
  std::vector<std::string> notes = census.notes;
  notes.insert(notes.end(), host.sources.notes.begin(), host.sources.notes.end());
  notes.insert(notes.end(), host.inventory.notes.begin(), host.inventory.notes.end());
  return notes;
}

std::string describe_guard(const kernel::Host& host) {
  const std::optional<journal::Status> status = journal::read_status(host);
  if (!status) {
    return "holdfastd does not run here: a loss is not repaired by itself, and its cause is not recorded";
  }
  std::string text = "holdfastd " + status->program.version + " (pid " + std::to_string(status->program.pid.value) +
                     ") detects changes by";
  text += status->tiers.has_v2 ? " " + to_string(status->tiers.v2) + " (v2)" : "";
  text += status->tiers.has_v1 ? " " + to_string(status->tiers.v1) + " (v1)" : "";
  return status->tiers.why.empty() ? text : text + "; " + join(status->tiers.why, "; ");
}

host::Libraries libraries_for(bool asks) { return asks ? host::Libraries::ask : host::Libraries::leave; }

}  // namespace

Result<report::DoctorReport> diagnose(host::OpenHost& opened, const Wanted& wanted) {
  host::Census census;
  HostFacts host = TRY(read_host_facts(opened, census, libraries_for(wanted.deep)));
  host.history = wanted.histories != nullptr ? *wanted.histories : read_histories(opened.host, host.config);
  report::DoctorReport report;
  std::vector<const host::DiscoveredContainer*> discovered_containers;
  if (wanted.containers.empty()) {
    report.findings = check_host(host, census);
    for (const host::DiscoveredContainer& discovered : census.discovered_containers) {
      discovered_containers.push_back(&discovered);
    }
  } else {
    discovered_containers =
        TRY(host::find_discovered(opened.host, census, wanted.containers, host::PodNames::all_containers));
  }
  ContainerExaminer examiner(opened, host);
  for (const host::DiscoveredContainer* discovered : discovered_containers) {
    auto [facts, diagnosis] = examiner.examine(*discovered, wanted.deep ? kernel::Depth::open : kernel::Depth::access);
    if (!discovered->container.is_sandbox) {  // as ps counts them
      ++report.states[to_string(diagnosis.state)];
      ++report.containers;
    }
    if (!facts.entitlement.owes_nothing()) {
      report.shields.push_back({title_of(discovered->container), diagnosis.shield});
    }
    std::ranges::move(diagnosis.findings, std::back_inserter(report.findings));
  }
  sort_by_severity(report.findings);
  report.notes = notes_of(host, census);
  report.guard = describe_guard(opened.host);
  return report;
}

Result<report::ContainerList> list_containers(host::OpenHost& opened) {
  host::Census census;
  HostFacts host = TRY(read_host_facts(opened, census, host::Libraries::leave));
  host.history = read_histories(opened.host, host.config);
  report::ContainerList list;
  list.now = opened.now;
  list.notes = notes_of(host, census);
  ContainerExaminer examiner(opened, host);
  for (const host::DiscoveredContainer& discovered : census.discovered_containers) {
    list.lines.push_back(line_of(examiner.examine(discovered, kernel::Depth::access)));
  }
  return list;
}

Result<report::Explanation> explain(host::OpenHost& opened, const std::string& container, const std::string& device,
                                    bool deep) {
  host::Census census;
  HostFacts host = TRY(read_host_facts(opened, census, libraries_for(deep)));
  host.history = read_histories(opened.host, host.config);
  const host::DiscoveredContainer* discovered = TRY(host::find_discovered(opened.host, census, {container})).front();
  const ExaminedContainer examined =
      ContainerExaminer(opened, host).examine(*discovered, deep ? kernel::Depth::open : kernel::Depth::access);
  report::Explanation explanation = explain_all(examined);
  explanation.now = opened.now;
  if (!device.empty()) {
    std::erase_if(explanation.nodes,
                  [&device](const container::NodeState& node) { return !is_named(*node.owed, device); });
    std::erase_if(explanation.findings,
                  [&](const Finding& finding) { return !is_about_any(finding, explanation.nodes); });
  }
  if (!device.empty() && explanation.nodes.empty()) {
    const std::string owed = examined.facts.nodes.empty() ? std::string(", and no other")
                                                          : "; it is owed " + summary_of(examined.facts.entitlement);
    return fail(std::errc::no_such_device, "device " + quote(device) + ": " + title_of(discovered->container) +
                                               " is owed no such device" + owed +
                                               did_you_mean(device, names_of(examined.facts.nodes)));
  }
  return explanation;
}

Result<report::DeviceList> list_devices(host::OpenHost& opened, bool ask_libraries) {
  host::Census census;
  HostFacts host = TRY(read_host_facts(opened, census, libraries_for(ask_libraries)));
  report::DeviceList list;
  for (const host::DiscoveredContainer& discovered : census.discovered_containers) {
    const container::Entitlement owed =
        host::entitlement_of(opened.host, discovered, host.sources, host.inventory, host.config);
    for (const container::OwedNode& node : owed.nodes) {
      list.entitled[node.path].push_back(title_of(discovered.container));
    }
  }
  const kernel::Holders holders = kernel::read_holders(opened.host);
  for (const device::Node& node : host.inventory.nodes) {
    const auto held = node.live ? holders.pids.find(*node.live) : holders.pids.end();
    for (const container::Pid pid : held == holders.pids.end() ? std::vector<container::Pid>() : held->second) {
      const Result<kernel::Process> process = kernel::read_process(opened.host, pid);
      list.holders[node.path].push_back(std::to_string(pid.value) + (process ? "(" + process->name + ")" : ""));
    }
  }
  list.inventory = std::move(host.inventory);
  if (std::optional<journal::PluginStatus> plugin = journal::read_plugin_status(opened.host)) {
    list.offers = std::move(plugin->resources);
  }
  if (!holders.is_complete) {
    list.inventory.notes.emplace_back("processes have too many open files to read them all: holders may be missing");
  }
  return list;
}

}  // namespace hf::doctor
