#include "adapters/systemd/unit.h"

#include <array>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::systemd {
namespace {

// In the order in which systemd prefers them; a drop-in hides those of the same name in later directories.
constexpr std::array<const char*, 7> kDirectories = {
    "/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/etc/systemd/system",
    "/run/systemd/system",         "/usr/lib/systemd/system",     "/lib/systemd/system"};

// The devices that DevicePolicy=closed allows in addition to the list, as in systemd's bpf_devices_allow_list_static
// (src/core/bpf-devices.c): pts without mknod, no console.
constexpr std::array<const char*, 8> kStandard = {"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm",
                                                  "c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rw"};

void apply_setting(std::string_view key, std::string_view value, UnitDevices& unit) {
  if (key == "DeviceAllow" && value.empty()) {
    unit.allow.clear();
  } else if (key == "DeviceAllow") {
    unit.allow.emplace_back(value);
  } else if (key == "DevicePolicy") {
    unit.policy = policy_of(value, unit.policy);
  } else if (key == "BPFProgram" && value.starts_with("device:")) {
    unit.pinned.emplace_back(value.substr(7));
  }
}

// The drop-in directories of "a-b.scope", the most specific first: a-b.scope.d, a-.scope.d, scope.d.
std::vector<std::string> drop_in_names(const std::string& unit) {
  std::vector<std::string> names = {unit + ".d"};
  const std::size_t dot = unit.rfind('.');
  if (dot == std::string::npos) {
    return names;
  }
  const std::string type = unit.substr(dot);
  for (std::size_t dash = unit.rfind('-', dot); dash != std::string::npos && dash > 0;
       dash = unit.rfind('-', dash - 1)) {
    names.push_back(unit.substr(0, dash + 1) + type + ".d");
  }
  names.push_back(type.substr(1) + ".d");
  return names;
}

}  // namespace

DevicePolicy policy_of(std::string_view value, DevicePolicy fallback) {
  return value == "closed"   ? DevicePolicy::closed
         : value == "strict" ? DevicePolicy::strict
         : value == "auto"   ? DevicePolicy::automatic
                             : fallback;
}

void apply_unit_file(std::string_view text, UnitDevices& unit) {
  bool is_unit_section = false;  // [Scope], [Service] or [Slice]
  std::string joined;            // lines that end in a backslash
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view content = trim(line);
    if (joined.empty() && (content.starts_with('#') || content.starts_with(';'))) {
      continue;
    }
    if (content.ends_with('\\')) {
      joined += std::string(content.substr(0, content.size() - 1)) + " ";
      continue;
    }
    joined += content;
    const std::string whole = std::exchange(joined, {});
    if (whole.starts_with('[')) {
      is_unit_section = whole == "[Scope]" || whole == "[Service]" || whole == "[Slice]";
      continue;
    }
    const std::size_t equals = whole.find('=');
    if (is_unit_section && equals != std::string::npos) {
      const std::string_view view = whole;
      apply_setting(trim(view.substr(0, equals)), trim(view.substr(equals + 1)), unit);
    }
  }
}

std::optional<UnitDevices> read_unit_devices(const kernel::Host& host, const std::string& unit) {
  if (unit.empty() || unit.find('/') != std::string::npos) {
    return std::nullopt;
  }
  UnitDevices found;
  for (const char* directory : kDirectories) {
    const std::string file = std::string(directory) + "/" + unit;
    if (const Result<std::string> text = kernel::read_text(host.root.get(), kernel::below_root(file))) {
      apply_unit_file(*text, found);
      found.files.push_back(file);
      break;
    }
  }
  std::map<std::string, std::string> drop_ins;  // name to file; names sort as systemd sorts them
  for (const std::string& names : drop_in_names(unit)) {
    for (const char* directory : kDirectories) {
      const std::string where = std::string(directory) + "/" + names;
      for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(where))) {
        if (name.ends_with(".conf")) {
          drop_ins.try_emplace(name, std::string(where).append("/").append(name));
        }
      }
    }
  }
  for (const auto& [name, file] : drop_ins) {
    if (const Result<std::string> text = kernel::read_text(host.root.get(), kernel::below_root(file))) {
      apply_unit_file(*text, found);
      found.files.push_back(file);
    }
  }
  return found.files.empty() ? std::nullopt : std::optional(found);
}

device::Table meaning(const UnitDevices& unit, const device::DeviceAllowContext& options) {
  if (unit.policy == DevicePolicy::automatic && unit.allow.empty()) {
    return device::Table::everything();
  }
  device::RuleSet rules;
  for (const std::string& entry : unit.allow) {
    const Result<device::RuleSet> parsed = parse_device_allow(entry, options);
    if (parsed) {  // systemd ignores entries that it does not understand
      rules.insert(rules.end(), parsed->begin(), parsed->end());
    }
  }
  if (unit.policy != DevicePolicy::strict) {
    for (const char* rule : kStandard) {
      rules.push_back(*device::parse_rule(rule));
    }
  }
  return device::Table::of_rules(rules);
}

bool is_running(const kernel::Host& host) { return kernel::exists(host.root.get(), "run/systemd/system"); }

}  // namespace hf::systemd
