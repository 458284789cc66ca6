#include "services/doctor/doctor.h"

#include <algorithm>

#include "adapters/journal/status.h"
#include "core/base/text.h"
#include "kernel/process.h"
#include "node/inventory.h"
#include "node/target.h"
#include "services/doctor/checks.h"

namespace hf::doctor {
namespace {

using report::Finding;

struct Judged {
  ContainerFacts facts;
  Findings findings;
  container::State state = container::State::not_owed;
  container::ShieldCover shield;
};

bool is_allocation_gone(const Finding& finding) { return finding.code == "HF-128"; }
bool is_risk(const Finding& finding) { return finding.code.starts_with("HF-2"); }

class Practice {
 public:
  Practice(Machine& machine, const HostFacts& host) : machine_(machine), host_(host) {}

  Judged judge(const node::Resident& resident, kernel::Depth depth) {
    Judged judged;
    judged.facts = read_container_facts(machine_, host_, resident, depth);
    const bool denied = std::ranges::any_of(judged.facts.nodes, [](const container::NodeState& node) {
      return node.diagnosis.trouble == container::Trouble::cgroup_denies;
    });
    if (denied) {
      judged.facts.holders = holders();
    }
    for (const auto check : {check_denied, check_nodes, check_risk, check_filters, check_libraries, check_evidence}) {
      check(host_, judged.facts, judged.findings);
    }
    judged.shield = container::cover_of(judged.facts.entitlement, judged.facts.observed);
    judged.state = state_of(judged.facts.nodes, std::ranges::any_of(judged.findings, is_risk) && !judged.shield.is_on);
    if (judged.state == container::State::not_owed && std::ranges::any_of(judged.findings, is_allocation_gone)) {
      judged.state = container::State::lost;  // owed, but nothing of it is left to look at
    }
    return judged;
  }

 private:
  // A look at every open file of the node: only where somebody has lost something.
  const kernel::Holders& holders() {
    if (!holders_) {
      holders_ = kernel::read_holders(machine_.host);
    }
    return *holders_;
  }

  Machine& machine_;
  const HostFacts& host_;
  std::optional<kernel::Holders> holders_;
};

// By its path, its last part, its class, or as ps writes it: "nvidia:0".
bool is_called(const container::OwedNode& node, const std::string& word) {
  const std::string name(name_in(node.path));
  const std::size_t colon = word.find(':');
  const bool by_number = colon != std::string::npos && word.substr(0, colon) == node.device_class &&
                         (name == word.substr(colon + 1) || name.ends_with(word.substr(colon + 1))) &&
                         name.find_last_not_of("0123456789") + 1 + word.size() - colon - 1 == name.size();
  return node.path == word || name == word || node.device_class == word || by_number;
}

// Is it about one of these nodes?
bool mentions(const Finding& finding, const std::vector<container::NodeState>& nodes) {
  const std::string text = finding.verdict + "\n" + join(finding.evidence, "\n");
  return std::ranges::any_of(
      nodes, [&text](const container::NodeState& node) { return text.find(node.owed.path) != std::string::npos; });
}

void sort_by_severity(Findings& findings) {
  std::ranges::sort(findings, [](const Finding& a, const Finding& b) {
    const auto key = [](const Finding& finding) {
      return std::tuple(-int(finding.severity), finding.subject != "host", finding.subject, finding.code,
                        finding.verdict);
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

std::vector<std::string> notes_of(const HostFacts& host, const node::Census& census) {
  std::vector<std::string> notes = census.notes;
  notes.insert(notes.end(), host.sources.notes.begin(), host.sources.notes.end());
  notes.insert(notes.end(), host.inventory.notes.begin(), host.inventory.notes.end());
  return notes;
}

std::string guard_words(const kernel::Host& host) {
  const std::optional<journal::Status> status = journal::read_status(host);
  if (!status) {
    return "holdfastd does not run here: a loss is not repaired by itself, and nobody records who did it";
  }
  std::string words =
      "holdfastd " + status->version + " (pid " + std::to_string(status->pid.value) + ") hears of changes by";
  words += status->tiers.has_v2 ? " " + to_string(status->tiers.v2) + " (v2)" : "";
  words += status->tiers.has_v1 ? " " + to_string(status->tiers.v1) + " (v1)" : "";
  return status->tiers.why.empty() ? words : words + "; " + join(status->tiers.why, "; ");
}

}  // namespace

Result<report::DoctorReport> diagnose(Machine& machine, const Wanted& wanted) {
  node::Census census;
  const HostFacts host = TRY(read_host_facts(machine, census, {wanted.deep, wanted.journal}));
  report::DoctorReport report;
  std::vector<const node::Resident*> residents;
  if (wanted.containers.empty()) {
    check_host(host, census, report.findings);
    check_cdi(host, report.findings);
    check_kubelet(host, report.findings);
    for (const node::Resident& resident : census.residents) {
      residents.push_back(&resident);
    }
  } else {
    residents = TRY(node::find_residents(machine.host, census, wanted.containers));
  }
  Practice practice(machine, host);
  for (const node::Resident* resident : residents) {
    Judged judged = practice.judge(*resident, wanted.deep ? kernel::Depth::open : kernel::Depth::access);
    ++report.states[to_string(judged.state)];
    ++report.containers;
    if (!judged.facts.entitlement.owes_nothing()) {
      report.shields.push_back({title_of(resident->container), judged.shield});
    }
    std::ranges::move(judged.findings, std::back_inserter(report.findings));
  }
  sort_by_severity(report.findings);
  report.notes = notes_of(host, census);
  report.guard = guard_words(machine.host);
  return report;
}

Result<report::ContainerList> list_containers(Machine& machine) {
  node::Census census;
  const HostFacts host = TRY(read_host_facts(machine, census, {}));
  report::ContainerList list;
  list.now = machine.now;
  list.notes = notes_of(host, census);
  Practice practice(machine, host);
  for (const node::Resident& resident : census.residents) {
    Judged judged = practice.judge(resident, kernel::Depth::access);
    list.lines.push_back({resident.container, std::move(judged.facts.entitlement), judged.state,
                          codes_of(judged.findings), judged.shield});
  }
  return list;
}

Result<report::Explanation> explain(Machine& machine, const std::string& container, const std::string& device,
                                    bool deep) {
  node::Census census;
  const HostFacts host = TRY(read_host_facts(machine, census, {deep, true}));
  const node::Resident* resident = TRY(node::find_residents(machine.host, census, {container})).front();
  Judged judged = Practice(machine, host).judge(*resident, deep ? kernel::Depth::open : kernel::Depth::access);
  report::Explanation explanation;
  explanation.now = machine.now;
  explanation.line = {resident->container, judged.facts.entitlement, judged.state, codes_of(judged.findings),
                      judged.shield};
  explanation.claims = judged.facts.claims;
  explanation.gates_problem = judged.facts.observed_problem;
  explanation.gates = judged.facts.observed.gates;
  for (const container::NodeState& node : judged.facts.nodes) {
    if (device.empty() || is_called(node.owed, device)) {
      explanation.nodes.push_back(node);
    }
  }
  if (!device.empty() && explanation.nodes.empty()) {
    return fail(std::errc::no_such_device,
                "device " + quote(device) + ": " + title_of(resident->container) + " is owed no such device" +
                    (judged.facts.nodes.empty() ? std::string(", and no other")
                                                : "; it is owed " + summary_of(judged.facts.entitlement)));
  }
  if (judged.facts.unit) {
    explanation.unit = resident->container.scope;
    explanation.unit_allows = judged.facts.unit->allow;
  }
  for (const container::Seen& seen : judged.facts.strangers) {
    explanation.strangers.push_back(seen.path);
  }
  if (!device.empty()) {
    std::erase_if(judged.findings, [&](const Finding& finding) { return !mentions(finding, explanation.nodes); });
  }
  sort_by_severity(judged.findings);
  explanation.findings = std::move(judged.findings);
  return explanation;
}

Result<report::DeviceList> list_devices(Machine& machine, bool ask_libraries) {
  node::Census census;
  HostFacts host = TRY(read_host_facts(machine, census, {ask_libraries, false}));
  report::DeviceList list;
  for (const node::Resident& resident : census.residents) {
    const container::Entitlement owed =
        node::entitlement_of(machine.host, resident, host.sources, host.inventory, host.config);
    for (const container::OwedNode& node : owed.nodes) {
      list.entitled[node.path].push_back(title_of(resident.container));
    }
  }
  const kernel::Holders holders = kernel::read_holders(machine.host);
  for (const device::Node& node : host.inventory.nodes) {
    const auto held = node.live ? holders.pids.find(*node.live) : holders.pids.end();
    for (const container::Pid pid : held == holders.pids.end() ? std::vector<container::Pid>() : held->second) {
      const Result<kernel::Process> process = kernel::read_process(machine.host, pid);
      list.holders[node.path].push_back(std::to_string(pid.value) + (process ? "(" + process->name + ")" : ""));
    }
  }
  list.inventory = std::move(host.inventory);
  if (!holders.is_complete) {
    list.inventory.notes.emplace_back("processes have too many open files to look at all: holders may be missing");
  }
  return list;
}

}  // namespace hf::doctor
