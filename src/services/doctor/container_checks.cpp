#include <algorithm>
#include <functional>

#include "core/base/text.h"
#include "core/bpf/producer.h"
#include "core/report/node_report.h"
#include "core/report/rules_report.h"
#include "services/doctor/checks.h"

namespace hf::doctor {
namespace {

using container::Gate;
using container::NodeState;
using container::Trouble;
using device::Access;
using report::Finding;
using report::Severity;

using Nodes = std::vector<const NodeState*>;

constexpr Access kReadWrite = Access::read | Access::write;
constexpr std::int64_t kStartSeconds = 2;  // a runtime is done with its rules that long after the first process starts

Nodes nodes_with(const ContainerFacts& facts, Trouble trouble) {
  Nodes nodes;
  for (const NodeState& node : facts.nodes) {
    if (node.diagnosis.trouble == trouble && node.is_troubled()) {
      nodes.push_back(&node);
    }
  }
  return nodes;
}

// A device works without its helpers.
Severity severity_of(const Nodes& nodes) {
  const bool only_helpers = std::ranges::all_of(nodes, [](const NodeState* node) {
    return node->owed.part == device::Part::helper || node->owed.part == device::Part::extra;
  });
  return only_helpers ? Severity::warning : Severity::critical;
}

bool denies(const Gate& gate, const NodeState& node) {
  const Access letters = node.owed.access & kReadWrite;
  return gate.meaning && node.owed.device &&
         !gate.meaning->allows({*node.owed.device, letters == Access::none ? kReadWrite : letters});
}

// A gate that is not of this container, nor of a cgroup the runtime made for it.
bool is_above(const Gate& gate, const ContainerFacts& facts) {
  const std::string& cgroup = facts.container().cgroup;
  return !gate.is_own && (cgroup == "/" || gate.where.find(cgroup) == std::string::npos);
}

const Gate* find_denier(const ContainerFacts& facts, const NodeState& node) {
  const Gate* found = nullptr;
  for (const Gate& gate : facts.observed.gates) {
    if (denies(gate, node)) {
      found = found == nullptr || (is_above(*found, facts) && !is_above(gate, facts)) ? &gate : found;
    }
  }
  return found;
}

std::string when_of(const Gate& gate, const ContainerFacts& facts) {
  if (!gate.program || !gate.program->loaded_at) {
    return {};
  }
  const std::int64_t after = *gate.program->loaded_at - facts.container().started_at;
  return ", loaded " + report::render_time(*gate.program->loaded_at) +
         (after > kStartSeconds ? ", " + report::render_age(after) + " after the container started"
                                : ", when the container started");
}

// Neither the runtime that made the container, nor NVIDIA's hook or systemd, which may have been there at its start.
bool is_written_by_another(const Gate& gate, const std::string& runtime) {
  if (gate.owner == bpf::kOurName) {
    return true;
  }
  return gate.owner != "systemd" && !gate.owner.empty() && !runtime.empty() && gate.owner != runtime &&
         gate.owner != "libnvidia-container";
}

// Kernel: ids of programs are given in the order of loading.
bool came_after_one_that_allows(const ContainerFacts& facts, const NodeState& node, const Gate& denier) {
  return std::ranges::any_of(facts.observed.gates, [&](const Gate& gate) {
    return gate.program && denier.program && gate.program->id && denier.program->id &&
           *gate.program->id < *denier.program->id && !is_above(gate, facts) && gate.meaning && !denies(gate, node);
  });
}

// v2: the program that refuses is not the runtime's, or is younger than the container, or than one in the same place
// that allows it. v1 keeps no times: what the
// bundle or a hook once gave, and is refused now, was taken.
bool was_lost(const HostFacts& host, const ContainerFacts& facts, const NodeState& node, const Gate* denier) {
  if (denier != nullptr && (is_written_by_another(*denier, facts.container().runtime.name) ||
                            came_after_one_that_allows(facts, node, *denier))) {
    return true;
  }
  if (denier != nullptr && denier->program && denier->program->loaded_at) {
    return *denier->program->loaded_at > facts.container().started_at + kStartSeconds;
  }
  const bool by_hook =
      std::ranges::any_of(node.owed.because, [](const std::string& words) { return words.starts_with("nvidia-hook"); });
  return !node.owed.is_completion && !(by_hook && host.sources.nvidia.no_cgroups);
}

std::string line_of(const ContainerFacts& facts, const NodeState& node, const Gate* denier) {
  const std::string device = node.owed.device ? to_string(*node.owed.device) : "no numbers";
  const std::string who = denier == nullptr ? "denied (the probe says so; no gate can be read)"
                                            : name_of(*denier) + " denies it" + when_of(*denier, facts);
  return node.owed.path + " (" + device + "): " + who;
}

std::vector<std::string> cures_of(const ContainerFacts& facts, const Nodes& nodes) {
  std::vector<std::string> cures;
  if (const std::string command = unit_command(facts, nodes); !command.empty()) {
    cures.push_back(command);
  }
  cures.push_back(grant_command(facts, nodes));
  return cures;
}

std::string holders_of(const ContainerFacts& facts, const Nodes& nodes) {
  std::vector<std::string> pids;
  for (const NodeState* node : nodes) {
    const auto held = node->owed.device ? facts.holders.find(*node->owed.device) : facts.holders.end();
    for (const container::Pid pid : held == facts.holders.end() ? std::vector<container::Pid>() : held->second) {
      const std::string text = std::to_string(pid.value);
      if (std::ranges::find(pids, text) == pids.end()) {
        pids.push_back(text);
      }
    }
  }
  return pids.empty()
             ? ""
             : "processes " + join(pids, ", ") + " opened it before and go on using it: no need to restart them";
}

std::string author_of(const ContainerFacts& facts, const Gate* denier) {
  if (denier != nullptr && !denier->owner.empty()) {
    return denier->owner;
  }
  if (denier != nullptr && denier->list && facts.unit) {
    return "systemd, most likely (cgroup v1 keeps no record, but the unit lacks it)";
  }
  return "";
}

void report_denied(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  Nodes lost;
  Nodes never;
  Nodes above;
  for (const NodeState* node : nodes_with(facts, Trouble::cgroup_denies)) {
    const Gate* denier = find_denier(facts, *node);
    const bool by_parent_list = denier != nullptr && denier->list &&
                                std::ranges::any_of(facts.observed.v1_above, [node](const container::V1Limit& limit) {
                                  return node->owed.device && !hides_exceptions(limit.list) &&
                                         !meaning(limit.list).allows({*node->owed.device, kReadWrite});
                                });
    if (denier != nullptr && (is_above(*denier, facts) || by_parent_list)) {
      above.push_back(node);
    } else if (was_lost(host, facts, *node, denier)) {
      lost.push_back(node);
    } else {
      never.push_back(node);
    }
  }
  const auto describe = [&facts](Finding& finding, const Nodes& nodes) {
    for (const NodeState* node : nodes) {
      finding.evidence.push_back(line_of(facts, *node, find_denier(facts, *node)));
    }
    const bool injected =
        std::ranges::any_of(nodes, [&facts](const NodeState* node) { return !is_in_spec(facts, node->owed); });
    if (injected && facts.resident->spec) {
      finding.evidence.push_back(facts.resident->spec_file +
                                 " has no rule for it: it was, or must be, given behind the " + "runtime's back");
    }
    if (const std::string held = holders_of(facts, nodes); !held.empty()) {
      finding.evidence.push_back(held);
    }
  };
  if (!lost.empty()) {
    const std::string author = author_of(facts, find_denier(facts, *lost.front()));
    Finding finding = finding_for(facts, "HF-101", severity_of(lost),
                                  "lost the right to open " + list_paths(lost) + ": its device rules were rewritten" +
                                      (author.empty() ? "" : " by " + author));
    describe(finding, lost);
    finding.cure = cures_of(facts, lost);
    findings.push_back(std::move(finding));
  }
  if (!never.empty()) {
    Finding finding =
        finding_for(facts, "HF-102", severity_of(never), "was never given the right to open " + list_paths(never));
    describe(finding, never);
    if (host.sources.nvidia.no_cgroups) {
      finding.evidence.push_back(std::string(nvidia::kSettingsFile) +
                                 ": no-cgroups = true keeps NVIDIA's hook from giving it");
    }
    finding.cure = cures_of(facts, never);
    findings.push_back(std::move(finding));
  }
  if (!above.empty()) {
    Finding finding = finding_for(facts, "HF-103", severity_of(above),
                                  "cannot open " + list_paths(above) + ": a cgroup above the container denies it");
    for (const NodeState* node : above) {
      const Gate* denier = find_denier(facts, *node);
      finding.evidence.push_back(line_of(facts, *node, denier));
      std::string where = denier->where;
      for (const container::V1Limit& limit :
           denier->list ? facts.observed.v1_above : std::vector<container::V1Limit>()) {
        if (!hides_exceptions(limit.list) && !meaning(limit.list).allows({*node->owed.device, kReadWrite})) {
          where = limit.where;  // the highest one: it must allow first
          finding.evidence.push_back(limit.where + "/devices.list does not allow it either");
        }
      }
      finding.cure.push_back("holdfast grant " + quoted_for_shell("cgroup:" + where) + " '" +
                             to_string(*node->owed.device) + " rw'");
    }
    finding.cure.push_back(grant_command(facts, above));
    std::ranges::sort(finding.evidence);
    finding.evidence.erase(std::ranges::unique(finding.evidence).begin(), finding.evidence.end());
    findings.push_back(std::move(finding));
  }
}

std::string in_container(const ContainerFacts& facts, const std::string& path) {
  return "/proc/" + std::to_string(facts.container().init.value) + "/root" + path;
}

std::string make_command(const ContainerFacts& facts, const NodeState& node) {
  const device::Device device = *node.owed.device;
  return "mknod -m 666 " + quoted_for_shell(in_container(facts, node.owed.path)) + " " +
         std::string(1, device::letter_of(device.kind)) + " " + std::to_string(device.major) + " " +
         std::to_string(device.minor);
}

void report_missing(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const Nodes missing = nodes_with(facts, Trouble::missing);
  const Nodes nowhere = nodes_with(facts, Trouble::missing_on_host);
  const std::size_t required =
      std::size_t(std::ranges::count_if(facts.nodes, [](const NodeState& node) { return !node.owed.is_rule_only; }));
  const bool nothing_there = missing.size() + nowhere.size() == required && required > 1;
  if (!missing.empty()) {
    const bool injected =
        std::ranges::none_of(missing, [&facts](const NodeState* node) { return is_in_spec(facts, node->owed); });
    Finding finding = nothing_there && injected
                          ? finding_for(facts, "HF-105", Severity::critical,
                                        "was to have " + summary_of(facts.entitlement) + ", but nothing was injected")
                          : finding_for(facts, "HF-104", severity_of(missing),
                                        "has no " + list_paths(missing) + ", though the host has it");
    for (const NodeState* node : missing) {
      finding.evidence.push_back(node->owed.path + ": not in the container; owed because " +
                                 join(node->owed.because, "; "));
    }
    if (finding.code == "HF-105") {
      finding.evidence.push_back("neither nodes nor rules of it are in " + facts.resident->spec_file);
      finding.cure.push_back("start the container again: libraries are missing in it as well");
    } else {
      for (const NodeState* node : missing) {
        if (node->owed.device) {
          finding.cure.push_back(make_command(facts, *node));
        }
      }
      finding.cure.push_back(grant_command(facts, missing));
    }
    findings.push_back(std::move(finding));
  }
  if (!nowhere.empty()) {
    Finding finding = finding_for(facts, "HF-104", severity_of(nowhere),
                                  "has no " + list_paths(nowhere) + ", and neither has the host");
    for (const NodeState* node : nowhere) {
      finding.evidence.push_back(node->diagnosis.words);
    }
    const bool is_nvidia = nowhere.front()->owed.device_class == "nvidia";
    finding.cure.push_back(is_nvidia ? "nvidia-modprobe -u -c 0" : "load the driver of " + list_paths(nowhere));
    findings.push_back(std::move(finding));
  }
  (void)host;
}

void report_numbers(const ContainerFacts& facts, Findings& findings) {
  const Nodes wrong = nodes_with(facts, Trouble::wrong_driver);
  Nodes moved;
  Nodes dead;
  for (const NodeState* node : nodes_with(facts, Trouble::no_driver)) {
    const bool has_moved = node->owed.device && node->seen.device != node->owed.device;
    (has_moved ? moved : dead).push_back(node);
  }
  Nodes stale = wrong;
  stale.insert(stale.end(), moved.begin(), moved.end());
  if (!stale.empty()) {
    Finding finding =
        finding_for(facts, "HF-106", severity_of(stale),
                    "has " + list_paths(stale) + " with numbers of the past: another driver, or none, is behind");
    for (const NodeState* node : stale) {
      finding.evidence.push_back(node->owed.path + ": " + node->diagnosis.words);
      finding.cure.push_back("rm " + quoted_for_shell(in_container(facts, node->owed.path)) + " && " +
                             make_command(facts, *node));
    }
    finding.cure.push_back(grant_command(facts, stale));
    findings.push_back(std::move(finding));
  }
  if (!dead.empty()) {
    Finding finding =
        finding_for(facts, "HF-107", severity_of(dead), "may open " + list_paths(dead) + ", but no driver answers");
    for (const NodeState* node : dead) {
      finding.evidence.push_back(node->owed.path + ": " + node->diagnosis.words);
    }
    const bool is_nvidia = dead.front()->owed.device_class == "nvidia";
    finding.cure.push_back(is_nvidia ? "modprobe nvidia && nvidia-modprobe -u -c 0" : "load the driver");
    findings.push_back(std::move(finding));
  }
}

struct Plain {
  Trouble trouble;
  const char* code;
  const char* verdict;  // after the paths
  const char* cure;
};

// Made anew and not changed: chmod would follow a link of the container's out of it. -d: it may be an empty folder.
std::string remake_command(const ContainerFacts& facts, const NodeState& node) {
  return "rm -d " + quoted_for_shell(in_container(facts, node.owed.path)) + " && " + make_command(facts, node);
}

std::string remount_command(const ContainerFacts& facts, const NodeState& node) {
  const container::Mount* mount = mount_over(facts.mounts, node.owed.path);
  // The host's mount, in the container's namespace: nsenter would run the container's own program as root.
  return "mount -N " + std::to_string(facts.container().init.value) + " -o remount,bind,dev " +
         quoted_for_shell(mount == nullptr ? "/dev" : mount->point);
}

void report_others(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const std::vector<Plain> table = {
      {Trouble::permission_bits, "HF-108", "are not for the container's user", ""},
      {Trouble::security_module, "HF-109", "are refused by a security module", "ausearch -m avc -ts recent"},
      {Trouble::nodev_mount, "HF-110", "lie on a mount with nodev", ""},
      {Trouble::driver_refuses, "HF-111", "are refused by the driver itself: the GPU is excluded",
       "take the GPU out of NVreg_ExcludedGpus, or give the container another one"},
      {Trouble::device_gone, "HF-112", "belong to a device that is gone", "nvidia-smi --gpu-reset, or reboot the node"},
      {Trouble::initialisation, "HF-113", "cannot be initialised by the driver", "dmesg | grep NVRM"},
      {Trouble::busy, "HF-114", "are being reset or drained", "wait, then ask again"},
      {Trouble::no_device_node, "HF-115", "are no device nodes", ""},
      {Trouble::unknown, "HF-116", "cannot be judged", ""},
  };
  for (const Plain& entry : table) {
    const Nodes nodes = nodes_with(facts, entry.trouble);
    if (nodes.empty()) {
      continue;
    }
    const Severity severity = entry.trouble == Trouble::unknown ? Severity::warning : severity_of(nodes);
    Finding finding = finding_for(facts, entry.code, severity, list_paths(nodes) + " " + entry.verdict);
    for (const NodeState* node : nodes) {
      finding.evidence.push_back(node->owed.path + ": " + node->diagnosis.words);
    }
    if (entry.trouble == Trouble::nodev_mount) {
      finding.cure.push_back(remount_command(facts, *nodes.front()));
    } else if (entry.trouble == Trouble::permission_bits || entry.trouble == Trouble::no_device_node) {
      for (const NodeState* node : nodes) {
        if (node->owed.device) {
          finding.cure.push_back(remake_command(facts, *node));
        }
      }
    } else if (*entry.cure != '\0') {
      finding.cure.emplace_back(entry.cure);
    }
    if (entry.trouble == Trouble::security_module) {
      finding.cure.emplace_back("setsebool -P container_use_devices on (SELinux)");
    }
    const bool of_driver = entry.trouble == Trouble::driver_refuses || entry.trouble == Trouble::device_gone ||
                           entry.trouble == Trouble::initialisation;
    for (const nvidia::LogEvent& event : of_driver ? host.log : std::vector<nvidia::LogEvent>()) {
      const bool is_about_them = std::ranges::any_of(nodes, [&](const NodeState* node) {
        const device::Unit* unit = host.inventory.unit_with(node->owed.path);
        return unit != nullptr && !event.pci.empty() && unit->pci.starts_with(event.pci);
      });
      if (is_about_them) {
        finding.evidence.push_back("kernel log: " + event.line);
      }
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace

std::string quoted_for_shell(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                          "_-./:@=+,") == std::string::npos;
  if (plain) {
    return word;
  }
  std::string quoted = "'";
  for (const char letter : word) {
    quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  }
  return quoted + "'";
}

std::string word_for(const container::Container& container) { return quoted_for_shell(title_of(container)); }

Finding finding_for(const ContainerFacts& facts, const char* code, Severity severity, std::string verdict) {
  return {code, severity, title_of(facts.container()), facts.container().id.value, std::move(verdict), {}, {}};
}

std::string list_paths(const Nodes& nodes) {
  std::vector<std::string> paths;
  paths.reserve(nodes.size());
  for (const NodeState* node : nodes) {
    paths.push_back(node->owed.path);
  }
  return join(paths, ", ");
}

std::string grant_command(const ContainerFacts& facts, const Nodes& nodes) {
  std::string command = "holdfast grant " + word_for(facts.container());
  for (const NodeState* node : nodes) {
    const Access access = node->owed.access & kReadWrite;
    if (node->owed.device) {
      command +=
          " '" + to_string(*node->owed.device) + " " + to_string(access == Access::none ? kReadWrite : access) + "'";
    }
  }
  return command;
}

std::string unit_command(const ContainerFacts& facts, const Nodes& nodes) {
  if (!facts.unit) {
    return {};
  }
  std::string command = "systemctl set-property --runtime " + quoted_for_shell(facts.container().scope);
  bool any = false;
  for (const NodeState* node : nodes) {
    if (!node->owed.device || facts.unit_table.allows({*node->owed.device, kReadWrite})) {
      continue;
    }
    const device::Device device = *node->owed.device;
    const device::Rule rule{
        {device.kind, device::Span{device.major, device.major}, device::Span{device.minor, device.minor}},
        kReadWrite,
        device::Match::within};
    if (const Result<std::string> words = to_device_allow(rule)) {
      command += " " + quoted_for_shell("DeviceAllow=" + *words);
      any = true;
    }
  }
  return any ? command : std::string();
}

bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node) {
  return node.device && facts.resident->spec && facts.spec_table.allows({*node.device, kReadWrite});
}

void check_access(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  if (!is_moved_up(facts)) {  // HF-117 has it: a grant would widen the cgroup of others
    report_denied(host, facts, findings);
  }
  report_missing(host, facts, findings);
  report_numbers(facts, findings);
  report_others(host, facts, findings);
}

}  // namespace hf::doctor
