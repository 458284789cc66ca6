#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "core/base/text.h"
#include "core/device/shortest.h"
#include "render/host.h"
#include "render/rules.h"
#include "render/text_table.h"
#include "render/time.h"

namespace hf::report {
namespace {

using container::Container;
using container::State;

std::string line_of(const std::string& text) { return on_one_line(text) + "\n"; }

std::string coloured(State state) {
  std::string text = to_string(state);
  switch (state) {
    case State::lost:
    case State::stale: return marked(kRed, text);
    case State::partial:
    case State::unknown:
    case State::at_risk: return marked(kYellow, text);
    case State::ok: return marked(kGreen, text);
    case State::not_owed: break;
  }
  return text;
}

std::string coloured(Severity severity) {
  const std::string text = to_string(severity);
  return severity == Severity::critical  ? marked(kRed, text)
         : severity == Severity::warning ? marked(kYellow, text)
                                         : text;
}

std::string cpus_of(const Container& it) {
  return !it.cpus ? "-" : *it.cpus + (it.has_exclusive_cpus ? " exclusive" : "");
}

std::string pod_of(const Container& it) {
  if (!it.pod) {
    return "-";
  }
  return it.pod->name.empty() ? it.pod->uid : it.pod->name_space + "/" + it.pod->name;
}

std::string name_of(const Container& it) {
  if (it.pod && !it.pod->container.empty()) {
    return it.pod->container;
  }
  return it.name.value_or(short_id(it.id));
}

std::string notes_of(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) {
    text += "note: " + on_one_line(note) + "\n";
  }
  return text;
}

std::string devices_of(const std::optional<device::Device>& device) { return device ? to_string(*device) : "-"; }

std::string memory_of(const std::optional<std::uint64_t>& bytes) {
  constexpr std::uint64_t kMebibyte = std::uint64_t(1) << 20;
  return bytes ? std::to_string(*bytes / kMebibyte) + " MiB" : "-";
}

std::string joined(const std::map<std::string, std::vector<std::string>>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? "-" : join(found->second, ",");
}

std::string numbers_of(const device::Node& node) {
  if (!node.live) {
    return marked(kRed, "missing");
  }
  return node.is_stale() ? marked(kRed, to_string(*node.live)) : to_string(*node.live);
}

std::string lines_of_claims(const std::vector<container::Claim>& claims) {
  std::string text;
  for (const container::Claim& claim : claims) {
    std::vector<std::string> paths = paths_of(claim);
    for (const device::Rule& rule : claim.rules) {
      paths.push_back(to_string(rule));
    }
    constexpr std::size_t kMostShown = 12;
    const std::size_t count = paths.size();
    if (count > kMostShown) {
      paths.resize(kMostShown);
      paths.push_back("and " + std::to_string(count - kMostShown) + " more");
    }
    text +=
        with_short_ids(on_one_line("  " + to_string(claim.source) + " (" + claim.where + "): " + join(paths, ", "))) +
        (claim.is_about_pod ? " (of the pod)" : "") + "\n";
    text += claim.refused.empty() ? "" : "    " + marked(kYellow, "not believed") + ": " + claim.refused + "\n";
  }
  return text.empty() ? "  nothing says that it may have a device\n" : text;
}

std::string identity_of(const Explanation& explanation) {
  const Container& it = explanation.line.container;
  std::string text =
      line_of(marked(kBold, title_of(it)) + " (" + short_id(it.id) + "): " + coloured(explanation.line.state));
  text += line_of("  engine " + or_dash(it.engine.value_or("")) +
                  (it.name_space && it.engine != "docker" ? " (" + *it.name_space + ")" : "") + ", runtime " +
                  (it.runtime ? title_of(*it.runtime) : "-") + ", cgroup driver " +
                  (it.driver ? to_string(*it.driver) : "-"));
  text += it.pod ? line_of("  pod " + pod_of(it) + ", uid " + or_dash(it.pod->uid)) : "";
  text += line_of("  process " + std::to_string(it.init.value) + ", since " + render_time(it.started_at) + ", CPUs " +
                  cpus_of(it));
  text += line_of("  cgroup " + printable(it.cgroup) + (it.unit ? ", unit " + *it.unit : ""));
  text += it.inside ? line_of("  inside container " + short_id(*it.inside)) : "";
  return text;
}

std::string gate_line(const container::Gate& gate, const container::NodeState& node) {
  std::string verdict = "cannot be read as rules";
  if (gate.meaning && node.owed->device) {
    const device::AccessSet set = gate.meaning->at(*node.owed->device);
    const bool allows = set.allows(device::Access::read | device::Access::write);
    verdict = allows ? marked(kGreen, "allows") : marked(kRed, "denies");
  }
  std::string text =
      "      " + with_short_ids(name_of(gate)) + (gate.is_own ? "" : ", above the container") + ": " + verdict;
  if (gate.program && gate.program->loaded_at) {
    text += ", loaded " + render_time(*gate.program->loaded_at);
  }
  return text + "\n";
}

std::string error_name(int number) {
  const char* const name = ::strerrorname_np(number);
  return number == 0 ? "ok" : name == nullptr ? "error " + std::to_string(number) : name;
}

std::string seen_line(const container::NodeState& node) {
  const container::NodeView& seen = node.seen;
  if (seen.lookup_error != 0) {
    return "      node: not there\n";
  }
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", seen.mode);
  std::string text = "      node: " + devices_of(seen.device) + " mode " + mode.data() + " owner " +
                     std::to_string(seen.uid) + ":" + std::to_string(seen.gid) +
                     (seen.is_on_nodev_mount ? ", on a mount with nodev" : "") + "\n";
  if (seen.access) {
    text += "      access(2) as its user, in its cgroup: " + error_name(*seen.access) + "\n";
  }
  if (seen.open) {
    text += "      open(2): " + error_name(*seen.open) + "\n";
  }
  return text;
}

// A line for each resource, and one for each device of it that must not be used.
std::string offers_of(const std::vector<resource::OfferStatus>& offers) {
  std::string text;
  for (const resource::OfferStatus& status : offers) {
    const std::size_t all = status.offer.devices.size();
    text += "kubelet is offered " + status.offer.resource + ": " + std::to_string(status.healthy()) + " of " +
            std::to_string(all) + " healthy, " + std::to_string(status.allocated) + " allocations, " +
            std::to_string(status.refused) + " refused" +
            (status.is_connected ? "" : "; " + marked(kRed, "kubelet does not read the list")) + "\n";
    for (const resource::OfferedDevice& device : status.offer.devices) {
      text += device.problem ? "  " + device.id + ": " + marked(kRed, *device.problem) + "\n" : "";
    }
  }
  return text + (text.empty() ? "" : "\n");
}

// Says whether one of several cures is enough.
std::string label_of(const Finding& finding, std::size_t cure) {
  if (finding.cure.size() == 1) {
    return "  cure: ";
  }
  if (finding.needs_all_cures) {
    return cure == 0 ? " first: " : "  then: ";
  }
  return cure == 0 ? "either: " : "    or: ";
}

}  // namespace

std::string render_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += "\n" + marked(kBold, finding.code) + " " + coloured(finding.severity) + " " +
            on_one_line(finding.subject + ": " + sentence_of(finding)) + "\n";
    for (const std::string& line : finding.evidence) {
      text += "    " + on_one_line(with_short_ids(line)) + "\n";
    }
    for (std::size_t i = 0; i < finding.cure.size(); ++i) {
      text += label_of(finding, i) + on_one_line(finding.cure[i]) + "\n";
    }
  }
  return text;
}

namespace {

std::string shield_text(const container::ShieldCover& cover) {
  return cover.is_on ? "on (" + count_of(cover.devices, "device") + ")" : "off";
}

std::string shields_of(const DoctorReport& report) {
  std::size_t on = 0;
  std::string off;
  for (const DoctorReport::Shielded& shielded : report.shields) {
    on += shielded.cover.is_on ? 1 : 0;
    off += shielded.cover.is_on ? "" : line_of("  not shielded: " + shielded.container + ": " + shielded.cover.why);
  }
  return report.shields.empty() ? ""
                                : "shield: " + std::to_string(on) + " of " +
                                      count_of(report.shields.size(), "container") + " with devices\n" + off;
}

}  // namespace

std::vector<std::string> container_columns() {
  return {"CONTAINER", "POD", "ENGINE", "DEVICES", "STATE", "CPUS", "SINCE"};
}

std::vector<std::string> cells_of(const ContainerLine& line, std::int64_t now) {
  const Container& it = line.container;
  return {name_of(it),          pod_of(it),  or_dash(it.engine.value_or("")), or_dash(summary_of(line.entitlement)),
          coloured(line.state), cpus_of(it), render_age(now - it.started_at)};
}

std::string render_text(const ContainerList& list, Width width, std::size_t columns) {
  if (list.lines.empty()) {
    return "no containers on this host\n" + notes_of(list.notes);
  }
  std::vector<std::string> head = container_columns();
  if (width == Width::wide) {
    head.insert(head.end(), {"ID", "PID", "RUNTIME", "DRIVER", "UNIT", "CGROUP", "SHIELD", "FINDINGS"});
  }
  TextTable table(std::move(head), width == Width::wide ? kAnyWidth : columns);
  for (const ContainerLine& line : list.lines) {
    const Container& it = line.container;
    std::vector<std::string> row = cells_of(line, list.now);
    if (width == Width::wide) {
      row.insert(row.end(),
                 {short_id(it.id), std::to_string(it.init.value), it.runtime ? title_of(*it.runtime) : "-",
                  it.driver ? to_string(*it.driver) : "-", it.unit.value_or("-"), printable(it.cgroup),
                  line.entitlement.owes_nothing() ? "-" : shield_text(line.shield), or_dash(join(line.codes, ","))});
    }
    table.add(row);
  }
  return table.render() + notes_of(list.notes);
}

std::string summary_line(const DoctorReport& report) {
  int critical = 0;
  int warnings = 0;
  for (const Finding& finding : report.findings) {
    critical += finding.severity == Severity::critical ? 1 : 0;
    warnings += finding.severity == Severity::warning ? 1 : 0;
  }
  std::vector<std::string> states;
  for (const char* state : {"lost", "stale", "partial", "unknown", "at risk", "ok"}) {
    if (const auto found = report.states.find(state); found != report.states.end() && found->second > 0) {
      states.push_back(std::to_string(found->second) + " " + state);
    }
  }
  const std::string problems = critical + warnings == 0 ? "no problem found"
                               : critical == 0          ? count_of(warnings, "warning")
                               : warnings == 0
                                   ? count_of(critical, "critical problem")
                                   : count_of(critical, "critical problem") + ", " + count_of(warnings, "warning");
  return problems + " (" + count_of(report.containers, "container") +
         (states.empty() ? "" : ": " + join(states, ", ")) + ")";
}

std::string render_text(const DoctorReport& report) {
  const std::string guard = report.guard.empty() ? "" : "guard: " + on_one_line(report.guard) + "\n";
  return summary_line(report) + "\n" + render_text(report.findings) + guard + shields_of(report) +
         notes_of(report.notes);
}

std::string render_worst(const DoctorReport& report) {
  const auto is_problem = [](const Finding& finding) { return finding.severity != Severity::note; };
  const auto worst = std::ranges::find_if(report.findings, is_problem);
  if (worst == report.findings.end()) {
    return "";
  }
  const auto count = std::ranges::count_if(report.findings, is_problem);
  const std::string more = count > 1 ? " (and " + std::to_string(count - 1) + " more)" : "";
  return on_one_line(worst->code + " " + worst->subject + ": " + sentence_of(*worst) + more) + "\n";
}

std::string render_text(const Explanation& explanation) {
  std::string text = identity_of(explanation);
  const container::ShieldCover& shield = explanation.line.shield;
  if (!explanation.line.entitlement.owes_nothing()) {
    text += line_of(shield.is_on ? "shield: on, " + count_of(shield.devices, "device") + "; it let through " +
                                       std::to_string(shield.count) + " that the rules refused"
                                 : "shield: off: " + shield.why);
  }
  text += "\nWho says what it may have\n" + lines_of_claims(explanation.claims);
  text += "\nWhat it is owed, and what stands in the way\n";
  if (explanation.nodes.empty()) {
    text += "  nothing\n";
  }
  for (const container::NodeState& node : explanation.nodes) {
    const bool bad = node.is_inaccessible();
    text += line_of("  " + node.owed->path + " " + devices_of(node.owed->device) + " " + to_string(node.owed->access) +
                    ": " + (bad ? marked(kRed, to_string(node.diagnosis.failure)) : marked(kGreen, "ok")));
    text += node.diagnosis.text.empty() ? "" : line_of("      " + node.diagnosis.text);
    text += line_of(with_short_ids("      because: " + join(node.owed->because, "; ")));
    for (const container::Gate& gate : node.owed->device ? explanation.gates : std::vector<container::Gate>()) {
      text += gate_line(gate, node);
    }
    text += seen_line(node);
  }
  text += explanation.gates_problem.empty() ? "" : "  the rules cannot be read: " + explanation.gates_problem + "\n";
  if (!explanation.not_owed.empty()) {
    text += "\n" + line_of("Nodes it has but is not owed: " + join(explanation.not_owed, ", "));
  }
  if (!explanation.unit.empty()) {
    text += "\nsystemd would put in force at the next daemon-reload (" + explanation.unit + ")\n";
    for (const std::string& entry : explanation.unit_allows) {
      text += "  " + entry + "\n";
    }
  }
  const bool clean = std::ranges::none_of(explanation.findings,
                                          [](const Finding& finding) { return finding.severity != Severity::note; });
  text += clean ? "\nVerdict: " + to_string(explanation.line.state) + "; nothing to do\n" : "\nVerdict\n";
  return text + render_text(explanation.findings);
}

std::string render_text(const DeviceList& list, std::size_t columns) {
  std::string text;
  for (const device::DriverState& state : list.inventory.states) {
    text += state.device_class + ": driver " + (state.version.empty() ? marked(kRed, "not loaded") : state.version) +
            (state.library_version.empty() ? "" : ", NVML " + state.library_version) +
            (state.cuda_version.empty() ? "" : ", CUDA " + state.cuda_version) +
            (state.modules.empty() ? "" : ", modules " + join(state.modules, " ")) + "\n";
    text += state.library_error.empty() ? "" : "  " + marked(kRed, state.library_error) + "\n";
    text += state.meaning.empty() ? "" : "  which means: " + state.meaning + "\n";
  }
  text += text.empty() ? "" : "\n";
  if (!list.inventory.units.empty()) {
    TextTable units({"DEVICE", "MODEL", "UUID", "MEMORY", "PCI", "NUMA", "HEALTH"}, columns);
    for (const device::Unit& unit : list.inventory.units) {
      const std::string health = to_string(unit.health) + (unit.health_text.empty() ? "" : ": " + unit.health_text);
      units.add({unit.device_class + " " + unit.name, or_dash(unit.model), or_dash(unit.uuid),
                 memory_of(unit.memory_bytes), or_dash(unit.pci), unit.numa ? std::to_string(*unit.numa) : "-",
                 unit.health == device::Health::bad ? marked(kRed, health) : health});
      for (const device::MigDevice& mig : unit.mig) {
        units.add({"  MIG " + std::to_string(mig.gpu_instance) + ":" + std::to_string(mig.compute_instance), "-",
                   or_dash(mig.uuid), "-", "-", "-", join(mig.nodes, " ")});
      }
    }
    text += units.render() + "\n";
  }
  text += offers_of(list.offers);
  if (list.inventory.nodes.empty()) {
    return text + "no device of a known class on this host\n" + notes_of(list.inventory.notes);
  }
  TextTable nodes({"NODE", "CLASS", "PART", "NUMBERS", "EXPECTED", "CONTAINERS", "HELD BY"}, columns);
  for (const device::Node& node : list.inventory.nodes) {
    nodes.add({node.path, node.device_class, to_string(node.part), numbers_of(node), devices_of(node.expected),
               joined(list.entitled, node.path), joined(list.holders, node.path)});
  }
  return text + nodes.render() + notes_of(list.inventory.notes);
}

}  // namespace hf::report
