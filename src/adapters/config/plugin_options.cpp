#include "adapters/config/plugin_options.h"

#include <algorithm>
#include <array>

#include "adapters/config/api_options.h"
#include "adapters/config/fields.h"
#include "core/base/text.h"
#include "core/resource/slice.h"

namespace hf::config {
namespace {

using resource::DeviceListStrategy;
using resource::IdKind;
using resource::MigStrategy;
using resource::Policy;
using resource::ResourceRule;
using resource::Sharing;
using resource::Spread;

constexpr unsigned kMostReplicas = 1000;

template <class Value, std::size_t N>
Result<Value> one_of(Yaml node, const std::string& where,
                     const std::array<std::pair<std::string_view, Value>, N>& known) {
  const std::string text = TRY(scalar_of(node, where));
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    if (name == text) {
      return value;
    }
    names.emplace_back(name);
  }
  return malformed(where + ": " + quote(text) + " is none of " + join(names, ", "));
}

constexpr std::array<std::pair<std::string_view, bool>, 2> kBooleans = {{{"true", true}, {"false", false}}};
constexpr std::array<std::pair<std::string_view, MigStrategy>, 3> kMigStrategies = {
    {{"none", MigStrategy::none}, {"single", MigStrategy::single}, {"mixed", MigStrategy::mixed}}};
constexpr std::array<std::pair<std::string_view, IdKind>, 2> kIds = {
    {{"uuid", IdKind::uuid}, {"index", IdKind::index}}};
constexpr std::array<std::pair<std::string_view, Spread>, 2> kSpreads = {
    {{"distributed", Spread::distributed}, {"packed", Spread::packed}}};

Result<void> read_flag(Yaml node, const std::string& where, bool& value) {
  if (node) {
    value = TRY(one_of(node, where, kBooleans));
  }
  return {};
}

Result<std::vector<Yaml>> list_of(Yaml node, const std::string& where) {
  if (node && !node.is_null() && !node.is_list()) {
    return malformed(where + " wants a list");
  }
  return std::vector<Yaml>(node.elements().begin(), node.elements().end());
}

// One name, or a list of names.
Result<std::set<DeviceListStrategy>> strategies_of(Yaml node, const std::string& where) {
  std::set<DeviceListStrategy> strategies;
  for (const Yaml entry : node.is_scalar() ? std::vector<Yaml>{node} : TRY(list_of(node, where))) {
    const std::string text = TRY(scalar_of(entry, where));
    for (const std::string_view name : split(text, ',')) {
      const Result<DeviceListStrategy> strategy = resource::parse_device_list_strategy(trim(name));
      if (!strategy) {
        return malformed(where + ": " + strategy.error().message);
      }
      strategies.insert(*strategy);
    }
  }
  return strategies.empty() ? Result<std::set<DeviceListStrategy>>(malformed(where + " wants at least one strategy"))
                            : strategies;
}

// NVIDIA's plugin adds its domain to a name that has none.
Result<std::string> resource_of(Yaml node, const std::string& where) {
  std::string name = TRY(scalar_of(node, where));
  name = name.find('/') == std::string::npos ? "nvidia.com/" + name : name;
  const Result<void> checked = resource::check_resource_name(name);
  return checked ? Result<std::string>(name) : malformed(where + ": " + checked.error().message);
}

Result<Sharing> sharing_of(Yaml entry, const std::string& where) {
  TRY(check_keys(entry, where, {"name", "rename", "devices", "replicas"}));
  Sharing sharing;
  sharing.resource = TRY(resource_of(entry["name"], where + ".name"));
  if (entry["rename"]) {
    sharing.rename = TRY(resource_of(entry["rename"], where + ".rename"));
  }
  if (entry["devices"] && (!entry["devices"].is_scalar() || entry["devices"].scalar() != "all")) {
    return malformed(where + ".devices: only all devices of a resource can be shared");
  }
  const std::optional<unsigned> replicas =
      entry["replicas"] ? parse_number<unsigned>(TRY(scalar_of(entry["replicas"], where + ".replicas"))) : std::nullopt;
  if (!replicas || *replicas < 2 || *replicas > kMostReplicas) {
    return malformed(where + ".replicas wants a number from 2 to " + std::to_string(kMostReplicas));
  }
  sharing.replicas = *replicas;
  return sharing;
}

Result<void> add_sharing(Yaml list, const std::string& where, Policy& policy) {
  std::size_t index = 0;
  for (const Yaml entry : TRY(list_of(list, where))) {
    Sharing sharing = TRY(sharing_of(entry, where + "[" + std::to_string(index++) + "]"));
    if (std::ranges::find(policy.sharing, sharing.resource, &Sharing::resource) != policy.sharing.end()) {
      return malformed(where + ": " + sharing.resource + " is there twice");
    }
    if (const Result<void> checked = resource::check_resource_name(name_of(sharing, policy)); !checked) {
      return malformed(where + ": " + checked.error().message);
    }
    policy.sharing.push_back(std::move(sharing));
  }
  return {};
}

Result<ResourceRule> rule_of(Yaml entry, const std::string& where) {
  TRY(check_keys(entry, where, {"name", "class", "pattern", "mig"}));
  ResourceRule rule;
  rule.resource = TRY(scalar_of(entry["name"], where + ".name"));
  const Result<void> checked = resource::check_resource_name(rule.resource);
  if (!checked) {
    return malformed(where + ".name: " + checked.error().message);
  }
  rule.device_class = entry["class"] ? TRY(scalar_of(entry["class"], where + ".class")) : rule.device_class;
  rule.pattern = entry["pattern"] ? TRY(scalar_of(entry["pattern"], where + ".pattern")) : rule.pattern;
  TRY(read_flag(entry["mig"], where + ".mig", rule.is_mig));
  return rule;
}

Result<void> read_dra(Yaml node, DraSettings& dra) {
  if (!node || node.is_null()) {
    return {};
  }
  TRY(check_keys(node, "kube.dra", {"enabled", "driver", "directory"}));
  TRY(read_flag(node["enabled"], "kube.dra.enabled", dra.is_enabled));
  dra.driver = node["driver"] ? TRY(scalar_of(node["driver"], "kube.dra.driver")) : dra.driver;
  if (const Result<void> checked = resource::check_driver_name(dra.driver); !checked) {
    return malformed("kube.dra.driver: " + checked.error().message);
  }
  dra.directory = node["directory"] ? TRY(scalar_of(node["directory"], "kube.dra.directory")) : dra.directory;
  return dra.directory.starts_with('/')
             ? Result<void>()
             : malformed("kube.dra.directory: " + quote(dra.directory) + " is not an absolute path");
}

// ---- NVIDIA's file ----

class NvidiaFile {
 public:
  NvidiaFile(KubeSettings& settings, std::vector<std::string>& notes) : settings_(settings), notes_(notes) {}

  Result<void> read(Yaml file) {
    TRY(check_keys(file, "the file", {"version", "flags", "resources", "sharing", "imex"}));
    if (!file["version"] || TRY(scalar_of(file["version"], "version")) != "v1") {
      return malformed("version wants v1");
    }
    if (file["flags"]) {
      TRY(read_flags(file["flags"]));
    }
    TRY(read_resources(file["resources"]));
    TRY(read_sharing(file["sharing"]));
    return refuse_imex(file["imex"]);
  }

 private:
  Result<void> read_flags(Yaml flags) {
    TRY(check_keys(flags, "flags",
                   {"migStrategy", "failOnInitError", "mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot", "gdrcopyEnabled",
                    "gdsEnabled", "mofedEnabled", "useNodeFeatureAPI", "deviceDiscoveryStrategy", "plugin", "gfd"}));
    Policy& policy = settings_.policy;
    if (flags["migStrategy"]) {
      policy.mig = TRY(one_of(flags["migStrategy"], "flags.migStrategy", kMigStrategies));
    }
    for (const char* key : {"gdrcopyEnabled", "gdsEnabled", "mofedEnabled"}) {
      bool is_on = false;
      TRY(read_flag(flags[key], std::string("flags.") + key, is_on));
      if (is_on) {
        return malformed(std::string("flags.") + key + " is not supported: containers would lack those devices");
      }
    }
    if (flags["deviceDiscoveryStrategy"]) {
      const std::string how = TRY(scalar_of(flags["deviceDiscoveryStrategy"], "flags.deviceDiscoveryStrategy"));
      if (how == "tegra") {
        return malformed("flags.deviceDiscoveryStrategy: tegra is not supported");
      }
    }
    for (const char* key : {"failOnInitError", "mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot", "useNodeFeatureAPI"}) {
      note(flags[key], std::string("flags.") + key);
    }
    note(flags["gfd"], "flags.gfd");
    return flags["plugin"] ? read_plugin(flags["plugin"]) : Result<void>();
  }

  Result<void> read_plugin(Yaml plugin) {
    const std::string where = "flags.plugin";
    TRY(check_keys(plugin, where,
                   {"passDeviceSpecs", "deviceListStrategy", "deviceIDStrategy", "cdiAnnotationPrefix", "nvidiaCTKPath",
                    "nvidiaCDIHookPath", "containerDriverRoot", "sharedDevicesAllocationPolicy", "cdiFeatureFlags",
                    "cdiDisableHooks"}));
    Policy& policy = settings_.policy;
    TRY(read_flag(plugin["passDeviceSpecs"], where + ".passDeviceSpecs", policy.passes_nodes));
    if (plugin["deviceListStrategy"]) {
      policy.strategies = TRY(strategies_of(plugin["deviceListStrategy"], where + ".deviceListStrategy"));
    }
    if (plugin["deviceIDStrategy"]) {
      policy.ids = TRY(one_of(plugin["deviceIDStrategy"], where + ".deviceIDStrategy", kIds));
    }
    if (plugin["cdiAnnotationPrefix"]) {
      policy.annotation_prefix = TRY(scalar_of(plugin["cdiAnnotationPrefix"], where + ".cdiAnnotationPrefix"));
    }
    if (plugin["sharedDevicesAllocationPolicy"]) {
      policy.spread =
          TRY(one_of(plugin["sharedDevicesAllocationPolicy"], where + ".sharedDevicesAllocationPolicy", kSpreads));
    }
    for (const char* key :
         {"nvidiaCTKPath", "nvidiaCDIHookPath", "containerDriverRoot", "cdiFeatureFlags", "cdiDisableHooks"}) {
      note(plugin[key], where + "." + key);
    }
    return {};
  }

  Result<void> read_resources(Yaml resources) {
    if (!resources || resources.is_null()) {
      return {};
    }
    TRY(check_keys(resources, "resources", {"gpus", "mig"}));
    std::vector<ResourceRule> rules;
    for (const bool is_mig : {false, true}) {
      const std::string where = std::string("resources.") + (is_mig ? "mig" : "gpus");
      for (const Yaml entry : TRY(list_of(resources[is_mig ? "mig" : "gpus"], where))) {
        TRY(check_keys(entry, where, {"pattern", "name"}));
        ResourceRule rule;
        rule.pattern = TRY(scalar_of(entry["pattern"], where + ".pattern"));
        rule.resource = TRY(resource_of(entry["name"], where + ".name"));
        rule.is_mig = is_mig;
        rules.push_back(std::move(rule));
      }
    }
    if (!rules.empty()) {
      std::erase_if(settings_.policy.rules, [](const ResourceRule& rule) { return rule.device_class == "nvidia"; });
      settings_.policy.rules.insert(settings_.policy.rules.begin(), rules.begin(), rules.end());
    }
    return {};
  }

  Result<void> read_sharing(Yaml sharing) {
    if (!sharing || sharing.is_null()) {
      return {};
    }
    TRY(check_keys(sharing, "sharing", {"timeSlicing", "mps"}));
    if (sharing["mps"] && !sharing["mps"].is_null()) {
      return malformed("sharing.mps is not supported; sharing.timeSlicing is");
    }
    const Yaml slicing = sharing["timeSlicing"];
    if (!slicing || slicing.is_null()) {
      return {};
    }
    const std::string where = "sharing.timeSlicing";
    TRY(check_keys(slicing, where, {"renameByDefault", "failRequestsGreaterThanOne", "resources"}));
    TRY(read_flag(slicing["renameByDefault"], where + ".renameByDefault", settings_.policy.renames_shared));
    TRY(read_flag(slicing["failRequestsGreaterThanOne"], where + ".failRequestsGreaterThanOne",
                  settings_.policy.allows_one_replica));
    return add_sharing(slicing["resources"], where + ".resources", settings_.policy);
  }

  static Result<void> refuse_imex(Yaml imex) {
    if (!imex || imex.is_null()) {
      return {};
    }
    TRY(check_keys(imex, "imex", {"channelIDs", "required"}));
    if (!TRY(list_of(imex["channelIDs"], "imex.channelIDs")).empty()) {
      return malformed("imex.channelIDs is not supported");
    }
    return {};
  }

  void note(Yaml node, const std::string& key) {
    if (node) {
      notes_.push_back(key + " has no effect on holdfast-kube");
    }
  }

  KubeSettings& settings_;
  std::vector<std::string>& notes_;
};

// The directories below kubelet's are where it has them, unless they are named.
Result<void> read_root(Yaml node, KubeSettings& settings) {
  if (!node) {
    return {};
  }
  settings.root_dir = TRY(scalar_of(node, "kube.root_dir"));
  while (settings.root_dir.ends_with('/')) {
    settings.root_dir.pop_back();
  }
  if (!settings.root_dir.starts_with('/')) {
    return malformed("kube.root_dir: " + quote(settings.root_dir) + " is not an absolute path");
  }
  settings.directory = settings.root_dir + "/device-plugins";
  settings.registry = settings.root_dir + "/plugins_registry";
  settings.dra.directory = settings.root_dir + "/plugins";
  return {};
}

Result<void> read_paths(Yaml node, KubeSettings& settings) {
  const std::array<std::pair<const char*, std::string*>, 4> paths = {{{"nvidia_config", &settings.nvidia_config},
                                                                      {"directory", &settings.directory},
                                                                      {"registry", &settings.registry},
                                                                      {"features", &settings.features}}};
  for (const auto& [key, path] : paths) {
    if (node[key]) {
      *path = TRY(scalar_of(node[key], std::string("kube.") + key));
      if (!path->starts_with('/')) {
        return malformed(std::string("kube.") + key + ": " + quote(*path) + " is not an absolute path");
      }
    }
  }
  return {};
}

Result<void> read_ignored_xids(Yaml node, KubeSettings& settings) {
  for (const Yaml entry : TRY(list_of(node, "kube.ignored_xids"))) {
    const std::optional<unsigned> number = parse_number<unsigned>(TRY(scalar_of(entry, "kube.ignored_xids")));
    if (!number) {
      return malformed("kube.ignored_xids wants numbers");
    }
    settings.ignored_xids.insert(*number);
  }
  return {};
}

}  // namespace

Result<void> parse_kube(Yaml node, KubeSettings& settings) {
  if (!node || node.is_null()) {
    return {};
  }
  TRY(check_keys(node, "kube",
                 {"nvidia_config", "resources", "mig", "strategies", "device_specs", "ids", "sharing", "spread",
                  "cdi_vendor", "root_dir", "directory", "registry", "registration", "ignored_xids", "xids",
                  "device_plugin", "dra", "api", "features"}));
  TRY(parse_api(node["api"], settings.api));
  Policy& policy = settings.policy;
  if (node["resources"]) {
    policy.rules.clear();
    for (const Yaml entry : TRY(list_of(node["resources"], "kube.resources"))) {
      policy.rules.push_back(TRY(rule_of(entry, "kube.resources[" + std::to_string(policy.rules.size()) + "]")));
    }
  }
  if (node["mig"]) {
    policy.mig = TRY(one_of(node["mig"], "kube.mig", kMigStrategies));
  }
  if (node["strategies"]) {
    policy.strategies = TRY(strategies_of(node["strategies"], "kube.strategies"));
  }
  TRY(read_flag(node["device_specs"], "kube.device_specs", policy.passes_nodes));
  if (node["ids"]) {
    policy.ids = TRY(one_of(node["ids"], "kube.ids", kIds));
  }
  if (node["spread"]) {
    policy.spread = TRY(one_of(node["spread"], "kube.spread", kSpreads));
  }
  TRY(add_sharing(node["sharing"], "kube.sharing", policy));
  constexpr std::array<std::pair<std::string_view, bool>, 2> kRegistrations = {{{"direct", false}, {"watcher", true}}};
  if (node["registration"]) {
    settings.uses_registry = TRY(one_of(node["registration"], "kube.registration", kRegistrations));
  }
  TRY(read_root(node["root_dir"], settings));
  TRY(read_paths(node, settings));
  if (node["cdi_vendor"]) {
    policy.cdi_vendor = TRY(scalar_of(node["cdi_vendor"], "kube.cdi_vendor"));
  }
  TRY(read_flag(node["xids"], "kube.xids", settings.watches_errors));
  TRY(read_flag(node["device_plugin"], "kube.device_plugin", settings.serves_device_plugin));
  TRY(read_dra(node["dra"], settings.dra));
  TRY(read_ignored_xids(node["ignored_xids"], settings));
  return {};
}

Result<void> parse_nvidia_plugin(std::string_view text, KubeSettings& settings, std::vector<std::string>& notes) {
  const Result<document::YamlDocument> document = document::YamlDocument::parse(text);
  if (!document) {
    return malformed(document.error().message);
  }
  KubeSettings changed = settings;
  changed.policy.sharing.clear();
  TRY(NvidiaFile(changed, notes).read(document->root()));
  settings = std::move(changed);
  return {};
}

}  // namespace hf::config
