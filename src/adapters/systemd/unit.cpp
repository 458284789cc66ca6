#include "adapters/systemd/unit.h"

#include <array>
#include <map>

#include "core/base/text.h"
#include "kernel/file.h"

namespace hf::systemd {
namespace {

// In the order in which systemd prefers them; a drop-in hides those of the same name in later folders.
constexpr std::array<const char*, 7> kFolders = {
    "/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/etc/systemd/system",
    "/run/systemd/system",         "/usr/lib/systemd/system",     "/lib/systemd/system"};

// "c 1:3" and the others that DevicePolicy=closed lets through besides the list, as systemd has them in
// bpf_devices_allow_list_static (src/core/bpf-devices.c): pts without mknod, no console.
constexpr std::array<const char*, 8> kStandard = {"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm",
                                                  "c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rw"};

DevicePolicy policy_of(std::string_view word) {
  return word == "closed" ? DevicePolicy::closed : word == "strict" ? DevicePolicy::strict : DevicePolicy::automatic;
}

}  // namespace

void apply_unit_file(std::string_view text, UnitDevices& unit) {
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.starts_with('#') || line.starts_with(';')) {
      continue;
    }
    const std::string_view key = trim(line.substr(0, equals));
    const std::string_view value = trim(line.substr(equals + 1));
    if (key == "DeviceAllow") {
      if (value.empty()) {
        unit.allow.clear();
      } else {
        unit.allow.emplace_back(value);
      }
    } else if (key == "DevicePolicy") {
      unit.policy = policy_of(value);
    } else if (key == "Delegate") {
      unit.delegates = !value.empty() && value != "no" && value != "false" && value != "0";
    } else if (key == "BPFProgram" && value.starts_with("device:")) {
      unit.pinned.emplace_back(value.substr(7));
    }
  }
}

std::optional<UnitDevices> read_unit_devices(const kernel::Host& host, const std::string& unit) {
  if (unit.empty() || unit.find('/') != std::string::npos) {
    return std::nullopt;
  }
  UnitDevices found;
  std::map<std::string, std::string> drop_ins;  // name to file; names sort as systemd sorts them
  bool has_fragment = false;
  for (const char* folder : kFolders) {
    const std::string file = std::string(folder) + "/" + unit;
    const Result<std::string> text =
        has_fragment ? fail(std::errc::file_exists, "") : kernel::read_text(host.root.get(), kernel::below_root(file));
    if (text) {
      has_fragment = true;
      apply_unit_file(*text, found);
      found.files.push_back(file);
    }
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(file + ".d"))) {
      if (name.ends_with(".conf")) {
        drop_ins.try_emplace(name, file + ".d/" + name);
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

device::Table meaning(const UnitDevices& unit, const device::DeviceWords& words) {
  if (unit.policy == DevicePolicy::automatic && unit.allow.empty()) {
    return device::Table::everything();
  }
  device::RuleSet rules;
  for (const std::string& entry : unit.allow) {
    const Result<device::RuleSet> parsed = parse_device_allow(entry, words);
    if (parsed) {  // systemd passes over what it does not understand
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
