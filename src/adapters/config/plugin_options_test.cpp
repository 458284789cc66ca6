#include "adapters/config/plugin_options.h"

#include <gtest/gtest.h>

namespace hf::config {
namespace {

using resource::DeviceListStrategy;
using resource::IdKind;
using resource::MigStrategy;
using resource::Spread;

Result<KubeSettings> read_nvidia(const std::string& text, std::vector<std::string>* notes = nullptr) {
  KubeSettings settings;
  std::vector<std::string> ignored;
  const Result<void> parsed = parse_nvidia_plugin(text, settings, notes == nullptr ? ignored : *notes);
  return parsed ? Result<KubeSettings>(settings) : std::unexpected(parsed.error());
}

TEST(PluginOptions, TheSectionKube) {
  const Result<Config> config = parse_config(R"(
kube:
  resources:
  - {name: nvidia.com/gpu}
  - {name: amd.com/gpu, class: amd, pattern: "renderD*"}
  mig: mixed
  strategies: [cdi-cri, envvar]
  device_specs: false
  ids: index
  spread: packed
  sharing: [{name: nvidia.com/gpu, replicas: 4, rename: nvidia.com/quarter}]
  registration: watcher
  ignored_xids: [94]
  features: /etc/kubernetes/node-feature-discovery/features.d/holdfast
)");
  ASSERT_TRUE(config) << config.error().message;
  const KubeSettings& kube = config->kube;
  ASSERT_EQ(kube.policy.rules.size(), 2U);
  EXPECT_EQ(kube.policy.rules[1].device_class, "amd");
  EXPECT_EQ(kube.policy.mig, MigStrategy::mixed);
  EXPECT_EQ(kube.policy.strategies,
            (std::set<DeviceListStrategy>{DeviceListStrategy::cdi_cri, DeviceListStrategy::envvar}));
  EXPECT_FALSE(kube.policy.passes_nodes);
  EXPECT_EQ(kube.policy.ids, IdKind::index);
  EXPECT_EQ(kube.policy.spread, Spread::packed);
  EXPECT_EQ(kube.policy.sharing[0].replicas, 4U);
  EXPECT_EQ(kube.policy.sharing[0].rename, "nvidia.com/quarter");
  EXPECT_TRUE(kube.uses_registry);
  EXPECT_EQ(kube.features, "/etc/kubernetes/node-feature-discovery/features.d/holdfast");
  EXPECT_TRUE(kube.ignored_xids.contains(94));
  EXPECT_TRUE(kube.ignored_xids.contains(13));
}

TEST(PluginOptions, DynamicResourceAllocationIsOffUnlessItIsAskedFor) {
  const Result<Config> defaults = parse_config("kube: {}");
  ASSERT_TRUE(defaults);
  EXPECT_TRUE(defaults->kube.serves_device_plugin);
  EXPECT_FALSE(defaults->kube.dra.is_enabled);
  EXPECT_EQ(defaults->kube.dra.driver, "gpu.holdfast.dev");
  const Result<Config> config =
      parse_config("kube: {device_plugin: false, dra: {enabled: true, driver: gpu.example.com, directory: /run/p}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->kube.serves_device_plugin);
  EXPECT_TRUE(config->kube.dra.is_enabled);
  EXPECT_EQ(config->kube.dra.driver, "gpu.example.com");
  EXPECT_EQ(config->kube.dra.directory, "/run/p");
}

TEST(PluginOptions, KubeletsDirectoriesFollowItsRoot) {
  const Result<Config> config = parse_config("kube: {root_dir: /var/lib/k0s/kubelet, registry: /run/registry}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kube.root_dir, "/var/lib/k0s/kubelet");
  EXPECT_EQ(config->kube.directory, "/var/lib/k0s/kubelet/device-plugins");
  EXPECT_EQ(config->kube.dra.directory, "/var/lib/k0s/kubelet/plugins");
  EXPECT_EQ(config->kube.registry, "/run/registry");
}

TEST(PluginOptions, TheSectionApi) {
  EXPECT_EQ(parse_config("kube: {mig: none}")->kube.api, ApiSettings());
  const Result<Config> config = parse_config(
      "kube: {api: {enabled: on, kubeconfig: /etc/k, node: gpu-7, events: false, condition: false, taint: true, "
      "spread: 300}}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kube.api, (ApiSettings{ApiUse::on, "/etc/k", "gpu-7", false, false, true, 300}));
}

TEST(PluginOptions, SwitchesMayBeWhatHelmMakesOfOnAndOff) {
  EXPECT_EQ(parse_config("kube: {api: {enabled: true}}")->kube.api.use, ApiUse::on);
  EXPECT_EQ(parse_config("kube: {api: {enabled: false}}")->kube.api.use, ApiUse::off);
  EXPECT_EQ(parse_config("kube: {api: {enabled: off}}")->kube.api.use, ApiUse::off);
  EXPECT_EQ(parse_config("guard: {shield: false}")->policy.shield, container::ShieldUse::off);
}

TEST(PluginOptions, RefusesWhatItDoesNotUnderstandAndNamesIt) {
  for (const auto& [text, what] : {std::pair("kube: {resourcs: []}", "resourcs"),
                                   {"kube: {mig: some}", "kube.mig"},
                                   {"kube: {strategies: [cdi]}", "cdi"},
                                   {"kube: {strategies: []}", "kube.strategies"},
                                   {"kube: {resources: [{name: gpu}]}", "gpu"},
                                   {"kube: {resources: [{class: amd}]}", "name"},
                                   {"kube: {sharing: [{name: nvidia.com/gpu}]}", "replicas"},
                                   {"kube: {sharing: [{name: nvidia.com/gpu, replicas: 1}]}", "replicas"},
                                   {"kube: {directory: plugins}", "kube.directory"},
                                   {"kube: {root_dir: kubelet}", "kube.root_dir"},
                                   {"kube: {root_dir: /}", "kube.root_dir"},
                                   {"kube: {dra: {driver: GPU/x}}", "kube.dra.driver"},
                                   {"kube: {dra: {directory: x}}", "kube.dra.directory"},
                                   {"kube: {dra: {on: true}}", "on"},
                                   {"kube: {device_plugin: maybe}", "kube.device_plugin"},
                                   {"kube: {api: {enabled: yes}}", "kube.api.enabled"},
                                   {"kube: {api: {kubeconfig: config}}", "kube.api.kubeconfig"},
                                   {"kube: {api: {spread: -1}}", "kube.api.spread"},
                                   {"kube: {api: {taint: maybe}}", "kube.api.taint"},
                                   {"kube: {api: {event: true}}", "event"},
                                   {"kube: {features: holdfast}", "kube.features"},
                                   {"kube: {device_specs: maybe}", "device_specs"},
                                   {"kube: [1]", "kube"}}) {
    const Result<Config> config = parse_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find(what), std::string::npos) << config.error().message;
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  }
}

TEST(PluginOptions, ANameThatSharingMakesTooLongIsRefused) {
  const std::string name = "nvidia.com/" + std::string(60, 'g');
  const auto file = [&name](const std::string& renames) {
    return "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: " + renames +
           "\n    resources:\n    - {name: " + name + ", replicas: 2}\n";
  };
  EXPECT_TRUE(read_nvidia(file("false")));
  const Result<KubeSettings> refused = read_nvidia(file("true"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(name + ".shared"), std::string::npos) << refused.error().message;
}

TEST(PluginOptions, AFileOfNvidiasPlugin) {
  std::vector<std::string> notes;
  const Result<KubeSettings> kube = read_nvidia(R"(
version: v1
flags:
  migStrategy: "single"
  failOnInitError: true
  nvidiaDriverRoot: "/"
  plugin:
    passDeviceSpecs: false
    deviceListStrategy: ["envvar", "cdi-cri"]
    deviceIDStrategy: "index"
  gfd: {oneshot: false}
resources:
  gpus: [{pattern: "A100-*", name: a100}, {pattern: "*", name: nvidia.com/gpu}]
  mig: [{pattern: "1g.5gb", name: mig-small}]
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - {name: nvidia.com/gpu, devices: all, replicas: 10}
)",
                                                &notes);
  ASSERT_TRUE(kube) << kube.error().message;
  EXPECT_EQ(kube->policy.mig, MigStrategy::single);
  EXPECT_EQ(kube->policy.strategies,
            (std::set<DeviceListStrategy>{DeviceListStrategy::envvar, DeviceListStrategy::cdi_cri}));
  EXPECT_FALSE(kube->policy.passes_nodes);
  EXPECT_EQ(kube->policy.ids, IdKind::index);
  ASSERT_EQ(kube->policy.rules.size(), 3U);
  EXPECT_EQ(kube->policy.rules[0].resource, "nvidia.com/a100");
  EXPECT_TRUE(kube->policy.rules[2].is_mig);
  EXPECT_TRUE(kube->policy.renames_shared);
  EXPECT_TRUE(kube->policy.allows_one_replica);
  EXPECT_EQ(kube->policy.sharing[0].replicas, 10U);
  EXPECT_EQ(notes.size(), 3U) << "failOnInitError, nvidiaDriverRoot and gfd";
}

TEST(PluginOptions, WhatCannotBeDoneIsRefusedByName) {
  for (const auto& [text, what] :
       {std::pair("version: v2", "version"),
        {"flags: {}", "version"},
        {"version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}", "sharing.mps"},
        {"version: v1\nflags: {gdsEnabled: true}", "gdsEnabled"},
        {"version: v1\nimex: {channelIDs: [0]}", "imex.channelIDs"},
        {"version: v1\nflags: {plugin: {deviceListStrategy: cdi}}", "cdi"},
        {"version: v1\nflags: {colour: blue}", "colour"},
        {"version: v1\nflags: {deviceDiscoveryStrategy: tegra}", "tegra"},
        {"version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, devices: [0], replicas: 2}]}}",
         "devices"},
        {"version: v1\nsharing: {timeSlicing: {resources: [{name: a, replicas: 2}, {name: a, replicas: 2}]}}", "twice"},
        {"version: [", "config"},
        {"", "the file"}}) {
    const Result<KubeSettings> kube = read_nvidia(text);
    ASSERT_FALSE(kube) << text;
    EXPECT_NE(kube.error().message.find(what), std::string::npos) << kube.error().message;
  }
}

}  // namespace
}  // namespace hf::config
