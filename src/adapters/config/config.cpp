#include "adapters/config/config.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <span>

#include "adapters/config/cpu_options.h"
#include "adapters/config/fields.h"
#include "adapters/config/guard_options.h"
#include "adapters/config/plugin_options.h"
#include "adapters/config/runtime_options.h"
#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::config {
namespace {

using device::DeviceClass;
using device::Part;

Result<DeviceClass> parse_class(Yaml entry, std::size_t index) {
  const std::string where = "classes[" + std::to_string(index) + "]";
  TRY(check_keys(entry, where, {"name", "title", "units", "control", "helpers", "extra", "driver"}));
  DeviceClass parsed;
  const std::string text = entry["name"].scalar();
  if (text.empty() || text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos) {
    return malformed(where + ": name wants small letters, digits and dashes");
  }
  parsed.name = text;
  parsed.title = entry["title"].is_scalar() ? entry["title"].scalar() : text;
  std::optional<device::Numbering> numbering;
  if (entry["driver"]) {  // its name in /proc/devices; minors are the numbers at the end of the device nodes' names
    if (entry["driver"].scalar().empty()) {
      return malformed(where + ": driver wants a name in /proc/devices");
    }
    numbering = device::Numbering{{entry["driver"].scalar()}, std::nullopt, std::nullopt};
  }
  constexpr std::array<std::pair<const char*, Part>, 4> kLists = {
      {{"units", Part::unit}, {"control", Part::control}, {"helpers", Part::helper}, {"extra", Part::extra}}};
  for (const auto& [key, part] : kLists) {
    for (const std::string& glob : TRY(paths_of(entry[key], where + "." + key))) {
      const bool is_numbered = glob.find_first_of("*?[") != std::string::npos;
      parsed.nodes.push_back({glob, part, is_numbered ? numbering : std::nullopt});
    }
  }
  const bool has_units = std::ranges::any_of(parsed.nodes, [](const auto& node) { return node.part == Part::unit; });
  if (!has_units) {
    return malformed(where + " (" + text + "): units wants at least one path or pattern");
  }
  return parsed;
}

void add_or_replace_class(DeviceClass parsed, device::DeviceClasses& classes) {
  const auto same = std::ranges::find(classes, parsed.name, &DeviceClass::name);
  if (same == classes.end()) {
    classes.push_back(std::move(parsed));
  } else {
    *same = std::move(parsed);
  }
}

Result<void> apply_document(Yaml document, Config& config) {
  if (!document || document.is_null()) {
    return {};
  }
  TRY(check_keys(
      document, "the file",
      {"classes", "state_roots", "guard", "web", "journal", "trust", "runtime", "cdi", "kube", "cpus", "nri"}));
  const Yaml classes = document["classes"];
  if (classes && !classes.is_list()) {
    return malformed("classes wants a list");
  }
  device::DeviceClasses own;
  for (const Yaml entry : classes.elements()) {
    DeviceClass parsed = TRY(parse_class(entry, own.size()));
    if (find_class(own, parsed.name) != nullptr) {
      return malformed("two classes are called " + quote(parsed.name));
    }
    own.push_back(std::move(parsed));
  }
  for (DeviceClass& entry : own) {
    add_or_replace_class(std::move(entry), config.classes);
  }
  for (std::string& path : TRY(paths_of(document["state_roots"], "state_roots"))) {
    config.state_roots.push_back(std::move(path));
  }
  TRY(parse_guard(document["guard"], config.policy));
  TRY(parse_web(document["web"], config.web));
  TRY(parse_journal(document["journal"], config.journal));
  TRY(parse_trust_rules(document["trust"], config.trust));
  TRY(parse_runtime(document["runtime"], config.runtime));
  TRY(parse_cdi(document["cdi"], config.cdi));
  TRY(parse_kube(document["kube"], config.kube));
  TRY(parse_cpus(document["cpus"], config.cpus));
  return parse_nri(document["nri"], config.nri);
}

Result<void> apply_text(const std::string& text, Config& config) {
  const Result<document::YamlDocument> document = document::YamlDocument::parse(text);
  return document ? apply_document(document->root(), config) : malformed(document.error().message);
}

// What names device classes in a file.
struct NamedClasses {
  std::string where;
  std::size_t rules = 0;  // of the guard
  std::string of_cdi;     // "": the file does not say
};

Result<void> check_class_of_cdi(const std::string& name, const device::DeviceClasses& classes) {
  const Result<void> known = name.empty() ? Result<void>() : device::check_class(classes, name);
  return known ? known : malformed("cdi.class: " + known.error().message);
}

// The rules of a later file come first.
Result<void> check_classes_by_file(const std::vector<NamedClasses>& files, const Config& config) {
  std::span<const container::PolicyRule> left = config.policy.rules;
  for (const NamedClasses& file : files | std::views::reverse) {
    const Result<void> of_rules = check_classes(left.first(file.rules), config.classes);
    const Result<void> checked = of_rules ? check_class_of_cdi(file.of_cdi, config.classes) : of_rules;
    if (!checked) {
      return fail(checked.error().code, file.where + checked.error().message);
    }
    left = left.subspan(file.rules);
  }
  return {};
}

Result<ConfigFile> read_file(const kernel::Host& host, const std::string& path) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(path));
  constexpr std::size_t kLongest = std::size_t(1) << 20U;  // the parser allocates hundreds of bytes per list entry
  if (text && text->size() > kLongest) {
    return fail(std::errc::file_too_large, "read " + path + ": it has more than 1 MiB");
  }
  return text ? Result<ConfigFile>(ConfigFile{path, *text})
              : fail(text.error().code, path + ": " + text.error().message);
}

}  // namespace

Result<Config> parse_config(const std::vector<ConfigFile>& files) {
  Config config;
  std::vector<NamedClasses> named;
  for (const ConfigFile& file : files) {
    const std::string where = file.name.empty() ? std::string() : file.name + ": ";
    const std::size_t rules_before = config.policy.rules.size();
    const std::string class_before = config.cdi.device_class;
    const Result<void> applied = apply_text(file.text, config);
    if (!applied) {
      return fail(applied.error().code, where + applied.error().message);
    }
    config.files.push_back(file.name);
    named.push_back({where, config.policy.rules.size() - rules_before,
                     config.cdi.device_class == class_before ? "" : config.cdi.device_class});
  }
  for (const DeviceClass& entry : device::built_in_classes()) {
    if (find_class(config.classes, entry.name) == nullptr) {
      config.classes.push_back(entry);
    }
  }
  TRY(check_classes_by_file(named, config));
  return config;
}

Result<Config> parse_config(std::string_view text) { return parse_config({ConfigFile{{}, std::string(text)}}); }

Result<Config> read_config(const kernel::Host& host) {
  std::vector<ConfigFile> files;
  Result<ConfigFile> main = read_file(host, kFile);
  if (main) {
    files.push_back(*std::move(main));
  } else if (main.error().code != std::errc::no_such_file_or_directory) {
    return std::unexpected(main.error());
  }
  for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(kDropIns))) {
    if (name.ends_with(".yaml") && !name.starts_with('.')) {
      files.push_back(TRY(read_file(host, std::string(kDropIns).append("/").append(name))));
    }
  }
  return parse_config(files);
}

Result<Config> read_config(const kernel::Host& host, const std::string& file) {
  return parse_config({TRY(read_file(host, file))});
}

}  // namespace hf::config
