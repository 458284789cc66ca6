#include "services/specs/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::specs {
namespace {

constexpr std::string_view kNoHook = ": no such program, and it is a hook";

using container::ContainerEdits;
using report::Finding;
using report::Severity;

constexpr std::size_t kMostShown = 8;

std::string numbers(const device::Device& device) {
  return std::to_string(device.major) + ":" + std::to_string(device.minor);
}

class Checker {
 public:
  Checker(const kernel::Host& host, const device::Inventory& inventory) : host_(host), inventory_(inventory) {}

  void check(const cdi::Registry& registry) {
    for (const cdi::BrokenSpec& broken : registry.broken) {
      add("HF-310", Severity::critical, "the CDI spec " + broken.file + " cannot be used", {broken.why})
          .cure.push_back("repair or remove " + broken.file);
    }
    check_shadows(registry);
    for (const cdi::Spec& spec : registry.specs) {
      check_spec(registry, spec);
    }
    report_.specs += registry.specs.size() + registry.broken.size();
  }

  report::CdiCheck take() {
    std::ranges::sort(report_.findings, [](const Finding& a, const Finding& b) {
      return std::tuple(b.severity, a.code, sentence_of(a)) < std::tuple(a.severity, b.code, sentence_of(b));
    });
    return std::move(report_);
  }

 private:
  Finding& add(const char* code, Severity severity, const std::string& what, std::vector<std::string> evidence) {
    if (evidence.size() > kMostShown) {
      const std::size_t more = evidence.size() - kMostShown;
      evidence.resize(kMostShown);
      evidence.push_back("and " + std::to_string(more) + " more");
    }
    report_.findings.push_back({code, severity, "host", {}, what, {}, std::move(evidence), {}});
    return report_.findings.back();
  }

  void check_shadows(const cdi::Registry& registry) {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> hidden;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> conflicts;
    for (const cdi::Registry::Shadow& shadow : registry.shadows) {
      (shadow.is_conflict ? conflicts : hidden)[{shadow.hidden, shadow.by}].push_back(shadow.device);
    }
    for (const auto& [files, devices] : conflicts) {
      add("HF-309", Severity::critical,
          "the CDI specs " + files.first + " and " + files.second + " have the same devices, so no container gets them",
          devices)
          .cure.push_back("remove one of " + files.first + " and " + files.second);
    }
    for (const auto& [files, devices] : hidden) {
      add("HF-309", Severity::note, "the CDI spec " + files.first + " is hidden by " + files.second, devices)
          .cure.push_back("remove " + files.first + " unless it is meant as a reserve");
    }
  }

  // The edits of the spec that an engine would use.
  static std::vector<const ContainerEdits*> used_edits(const cdi::Registry& registry, const cdi::Spec& spec) {
    std::vector<const ContainerEdits*> used;
    for (const auto& [name, edits] : spec.devices) {
      if (registry.is_effective(spec, name)) {
        used.push_back(&edits);
      }
    }
    if (!used.empty() || spec.devices.empty()) {
      used.push_back(&spec.all);
    }
    return used;
  }

  void check_spec(const cdi::Registry& registry, const cdi::Spec& spec) {
    report_.devices += spec.devices.size();
    if (std::vector<std::string> faults = cdi::faults_of(spec); !faults.empty()) {
      add("HF-310", Severity::critical, "engines refuse the CDI spec " + spec.file, std::move(faults))
          .cure.push_back(cdi::recreate_command(spec));
    }
    std::set<std::string> stale;
    std::set<std::string> missing;
    for (const ContainerEdits* edits : used_edits(registry, spec)) {
      for (const container::NodeEdit& node : edits->nodes) {
        check_node(node, stale, missing);
      }
      check_files(*edits, missing);
    }
    if (!stale.empty()) {
      Finding& finding =
          add("HF-308", Severity::critical, "the CDI spec " + spec.file + " is stale", {stale.begin(), stale.end()});
      finding.because = "new containers get nodes with wrong numbers";
      finding.cure.push_back(cdi::recreate_command(spec));
    }
    if (!missing.empty()) {
      Finding& finding =
          add("HF-310", Severity::critical, "the CDI spec " + spec.file + " wants what this host does not have",
              {missing.begin(), missing.end()});
      finding.because = "its containers will not start";
      // A new spec would need our hook as well, so a missing hook has to be installed instead.
      const auto hook = std::ranges::find_if(missing, [](const std::string& line) {
        return line.ends_with(kNoHook) && line.find("/holdfast-runtime:") != std::string::npos;
      });
      if (hook != missing.end()) {
        finding.cure.push_back("install -m 755 holdfast-runtime " + hook->substr(0, hook->size() - kNoHook.size()));
      }
      if (hook == missing.end() || missing.size() > 1) {
        finding.cure.push_back(cdi::recreate_command(spec));
      }
    }
  }

  void check_node(const container::NodeEdit& node, std::set<std::string>& stale, std::set<std::string>& missing) const {
    const device::Node* known = inventory_.find(node.on_host());
    const std::optional<kernel::NodeOnHost> live =
        known == nullptr ? kernel::read_node(host_, node.on_host()) : std::nullopt;
    const std::optional<device::Device> current = known != nullptr ? known->numbers()
                                                  : live           ? std::optional(live->device)
                                                                   : std::nullopt;
    if (!node.device) {
      if (!current && !kernel::exists(host_.root.get(), kernel::below_root(node.on_host()))) {
        missing.insert(node.on_host() + ": no such node");
      }
      return;
    }
    if (current && (current->major != node.device->major || current->minor != node.device->minor)) {
      stale.insert(node.path + ": the spec has " + numbers(*node.device) + ", now it is " + numbers(*current));
    } else if (!current && device::driver_with(inventory_.drivers, node.device->kind, node.device->major).empty()) {
      stale.insert(node.path + ": the spec has " + numbers(*node.device) + ", and no driver has this number now");
    }
  }

  void check_files(const ContainerEdits& edits, std::set<std::string>& missing) const {
    const auto check_path = [&](const std::string& path, std::string_view what) {
      if (path.starts_with('/') && !kernel::exists(host_.root.get(), kernel::below_root(path))) {
        missing.insert(path + std::string(what));
      }
    };
    for (const container::MountEdit& mount : edits.mounts) {
      check_path(mount.source, ": no such file");
    }
    for (const container::HookEdit& hook : edits.hooks) {
      check_path(hook.path, kNoHook);
    }
  }

  const kernel::Host& host_;
  const device::Inventory& inventory_;
  report::CdiCheck report_;
};

// Why no device has this name.
std::string why_not(const cdi::Registry& registry, const std::string& name) {
  const std::size_t equals = name.find('=');
  if (equals == std::string::npos) {
    return "want a name such as nvidia.com/gpu=0";
  }
  std::vector<std::string> files;
  for (const cdi::Spec& spec : registry.specs) {
    if (spec.kind == name.substr(0, equals) && spec.devices.contains(name.substr(equals + 1))) {
      files.push_back(spec.file);
    }
  }
  if (!files.empty()) {
    return "more than one spec of a directory has it, so none counts: " + join(files, ", ");
  }
  const std::string broken = registry.broken.empty() ? "" : "; " + registry.broken.front().file + " cannot be read";
  return "no spec of /etc/cdi or /var/run/cdi has it" + broken + " (holdfast cdi list)";
}

std::string state_of(const cdi::Registry& registry, const cdi::Spec& spec, const std::string& device) {
  if (registry.is_effective(spec, device)) {
    return "ok";
  }
  return registry.edits_of(spec.kind + "=" + device) ? "hidden" : "conflict";
}

}  // namespace

report::CdiCheck check_registry(const kernel::Host& host, const device::Inventory& inventory) {
  Checker checker(host, inventory);
  checker.check(cdi::read_registry(host));
  return checker.take();
}

Result<report::CdiCheck> check_files(const kernel::Host& host, const device::Inventory& inventory,
                                     const std::vector<std::string>& files) {
  Checker checker(host, inventory);
  for (const std::string& file : files) {
    const std::string text = TRY(kernel::read_regular_file(file));
    cdi::Registry single;
    Result<cdi::Spec> spec = cdi::parse_spec(text, file);
    if (spec) {
      single.specs.push_back(*std::move(spec));
    } else {
      single.broken.push_back({file, spec.error().message});
    }
    checker.check(single);
  }
  return checker.take();
}

report::CdiList list_devices(const kernel::Host& host) {
  report::CdiList list;
  const cdi::Registry registry = cdi::read_registry(host);
  for (const cdi::Spec& spec : registry.specs) {
    for (const auto& [device, own] : spec.devices) {
      ContainerEdits edits = spec.all;
      append(edits, own);
      list.devices.push_back({spec.kind + "=" + device, spec.file, spec.version, state_of(registry, spec, device),
                              edits.nodes.size(), edits.mounts.size(), edits.hooks.size()});
    }
  }
  std::ranges::sort(list.devices, [](const report::CdiList::Device& a, const report::CdiList::Device& b) {
    return std::tie(a.name, a.file) < std::tie(b.name, b.file);
  });
  for (const cdi::BrokenSpec& broken : registry.broken) {
    list.broken.push_back({broken.file, broken.why});
  }
  return list;
}

Result<ContainerEdits> resolve(const cdi::Registry& registry, const std::vector<std::string>& names) {
  ContainerEdits edits;
  for (const std::string& name : names) {
    const std::optional<ContainerEdits> more = registry.edits_of(name);
    if (!more) {
      const bool is_name = name.find('/') < name.find('=') && name.contains('=');
      const std::string why = "resolve " + quote(name) + ": " + why_not(registry, name);
      return is_name ? fail(Reason::unavailable, why) : fail(std::errc::invalid_argument, why);
    }
    append(edits, *more);
  }
  return edits;
}

}  // namespace hf::specs
