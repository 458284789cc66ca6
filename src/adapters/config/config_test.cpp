#include "adapters/config/config.h"

#include <chrono>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::config {
namespace {

using test::FakeHost;
using test::Files;
using Strings = std::vector<std::string>;

constexpr const char* kNpu = R"(
classes:
  - name: npu
    title: Our NPU
    driver: npu-driver
    units: ["/dev/npu[0-9]*"]
    control: [/dev/npu_manager]
    helpers: [/dev/npu-log]
    extra: [/dev/npu-debug*]
state_roots: [/run/our-runc, /run/our-crun]
)";

Files with_cgroups(Files files) {
  files["proc/self/mountinfo"] = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  return files;
}

TEST(Config, DefinesADeviceClass) {
  const Result<Config> config = parse_config(kNpu);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->state_roots, (Strings{"/run/our-runc", "/run/our-crun"}));
  EXPECT_EQ(config->classes.size(), device::built_in_classes().size() + 1);
  const device::DeviceClass& npu = config->classes.front();
  EXPECT_EQ(npu.name, "npu");
  EXPECT_EQ(npu.title, "Our NPU");
  ASSERT_EQ(npu.nodes.size(), 4U);
  EXPECT_EQ(npu.nodes[0].part, device::Part::unit);
  ASSERT_TRUE(npu.nodes[0].numbering);
  EXPECT_EQ(npu.nodes[0].numbering->drivers, Strings{"npu-driver"});
  EXPECT_EQ(npu.nodes[1].part, device::Part::control);
  EXPECT_FALSE(npu.nodes[1].numbering);
  EXPECT_EQ(npu.nodes[2].part, device::Part::helper);
  EXPECT_EQ(npu.nodes[3].part, device::Part::extra);
}

TEST(Config, MayReplaceABuiltInClass) {
  const Result<Config> config = parse_config("classes:\n- {name: kvm, units: [/dev/our-kvm]}\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->classes.size(), device::built_in_classes().size());
  EXPECT_EQ(find_class(config->classes, "kvm")->nodes.at(0).glob, "/dev/our-kvm");
  EXPECT_EQ(find_class(config->classes, "kvm")->title, "kvm");
}

TEST(Config, HasTheDefaultsWhenItIsEmpty) {
  for (const char* text : {"", "\n", "!2", "# classes:\n", "---\n", "~", "{}", "classes: []", "state_roots: []"}) {
    const Result<Config> config = parse_config(text);
    ASSERT_TRUE(config) << text << ": " << config.error().message;
    EXPECT_EQ(config->classes.size(), device::built_in_classes().size()) << text;
    EXPECT_TRUE(config->state_roots.empty()) << text;
  }
}

TEST(Config, NamesTheKeyThatIsWrong) {
  struct Case {
    const char* text;
    const char* key;
  };
  for (const Case& entry : {Case{"classses: []", "'classses'"},
                            Case{"classes: {}", "classes"},
                            Case{"classes:", "classes"},
                            Case{"classes: [1]", "classes[0]"},
                            Case{"classes: [null]", "classes[0]"},
                            Case{"classes: [[a]]", "classes[0]"},
                            Case{"classes: [{name: a, units: [/dev/a]}, {nmae: b}]", "classes[1]"},
                            Case{"classes: [{units: [/dev/a]}]", "name"},
                            Case{"classes: [{name: A, units: [/dev/a]}]", "name"},
                            Case{"classes: [{name: [a], units: [/dev/a]}]", "name"},
                            Case{"classes: [{name: ../a, units: [/dev/a]}]", "name"},
                            Case{"classes: [{name: a}]", "units"},
                            Case{"classes: [{name: a, units: []}]", "units"},
                            Case{"classes: [{name: a, control: [/dev/a]}]", "units"},
                            Case{"classes: [{name: a, units: /dev/a}]", "classes[0].units"},
                            Case{"classes: [{name: a, units: [a]}]", "classes[0].units"},
                            Case{"classes: [{name: a, units: [[/dev/a]]}]", "classes[0].units"},
                            Case{"classes: [{name: a, units: [/dev/a], extra: {b: c}}]", "classes[0].extra"},
                            Case{"classes: [{name: a, units: [/a]}, {name: a, units: [/b]}]", "'a'"},
                            Case{"state_roots: /run/runc", "state_roots"},
                            Case{"state_roots:", "state_roots"},
                            Case{"state_roots: [run]", "state_roots"},
                            Case{"state_roots: [1]", "state_roots"},
                            Case{"? [a]\n: b", "unknown key"},
                            Case{"guard: {mode: heal}\nguard: {mode: observe}", "'guard'"},
                            Case{"guard: {mode: heal, mode: observe}", "'mode'"},
                            Case{"guard: {rules: [{labels: {a: b, a: c}, mode: observe}]}", "'a'"},
                            Case{"cpus: {options: {full-pcpus-only: true, full-pcpus-only: false}}", "full-pcpus"},
                            Case{"[]", "the file"},
                            Case{"word", "the file"}}) {
    const Result<Config> config = parse_config(entry.text);
    ASSERT_FALSE(config) << entry.text;
    EXPECT_NE(config.error().message.find(entry.key), std::string::npos) << config.error().message;
  }
}

TEST(Config, RefusesADriverThatIsNoName) {
  for (const char* driver : {"[a]", "{a: b}", "''", "~"}) {
    const Result<Config> config =
        parse_config(std::string("classes: [{name: a, units: [/dev/a*], driver: ") + driver + "}]");
    ASSERT_FALSE(config) << driver;
    EXPECT_NE(config.error().message.find("driver"), std::string::npos) << config.error().message;
  }
}

TEST(Config, ThatIsNoYamlIsRefusedQuickly) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& text : {std::string("a: b: c"), std::string("\t- x"), std::string("{"),
                                  std::string("*unknown"), std::string("classes: [&a [*a]]"), std::string(100'000, '['),
                                  std::string(100'000, '{'), std::string("\xff\xfe\x00x", 4), std::string("? ? ?")}) {
    EXPECT_FALSE(parse_config(text)) << text.substr(0, 20);
  }
  std::string deep;
  for (int i = 0; i < 20'000; ++i) {
    deep += "- ";
  }
  EXPECT_FALSE(parse_config(deep + "a"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Config, IsReadFromItsFileWhichMayBeMissing) {
  EXPECT_TRUE(read_config(FakeHost(with_cgroups({})).open()));
  EXPECT_EQ(read_config(FakeHost(with_cgroups({{"etc/holdfast/config.yaml", kNpu}})).open())->classes.front().name,
            "npu");
  const Result<Config> broken = read_config(FakeHost(with_cgroups({{"etc/holdfast/config.yaml", "x: 1"}})).open());
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.starts_with(kFile)) << broken.error().message;
}

TEST(Config, IsNotTrustedWhenOthersMayWriteIt) {
  const FakeHost host(with_cgroups({{"etc/holdfast/config.yaml", kNpu}}));
  ASSERT_EQ(::chmod((host.root() + "/etc/holdfast/config.yaml").c_str(), 0664), 0);
  EXPECT_EQ(read_config(host.open()).error().code, std::errc::permission_denied);
}

TEST(Config, ReadsTheSettingsOfTheDaemon) {
  const Result<Config> config = parse_config(R"(
guard:
  mode: observe
  rules:
    - {class: nvidia, engine: docker, namespace: prod, container: "t*", labels: {a: b}, mode: lock}
  limits: {burst: 7, per_second: 3, longest_wait_ms: 50}
web: {listen: none, socket: /run/x.sock}
cdi: {file: /run/cdi/x.yaml, hook: /var/x/holdfast-runtime}
journal: {directory: /var/x, megabytes: 2}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->policy.mode, container::Mode::observe);
  ASSERT_EQ(config->policy.rules.size(), 1U);
  EXPECT_EQ(config->policy.rules[0].mode, container::Mode::lock);
  EXPECT_EQ(config->policy.rules[0].match.labels.at("a"), "b");
  EXPECT_EQ(config->policy.limits.burst, 7U);
  EXPECT_EQ(config->policy.limits.longest_wait.count(), 50);
  EXPECT_EQ(config->web.listen, "");
  EXPECT_EQ(config->cdi.file, "/run/cdi/x.yaml");
  EXPECT_EQ(config->cdi.hook, "/var/x/holdfast-runtime");
  EXPECT_EQ(config->journal.size, std::uint64_t(2) << 20U);
}

TEST(Config, EvaluatesTheRulesOfALaterFileFirst) {
  const Result<Config> config = parse_config({{"a.yaml", "guard: {mode: heal, rules: [{mode: observe}]}"},
                                              {"b.yaml", "guard: {rules: [{engine: docker, mode: lock}]}"}});
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->policy.rules.size(), 2U);
  EXPECT_EQ(config->policy.rules[0].mode, container::Mode::lock);
  EXPECT_EQ(config->policy.mode, container::Mode::heal);
}

TEST(Config, NamesTheSettingOfTheDaemonThatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"guard: {mode: Heal}", "mode"},
      {"guard: {rules: [{engine: docker}]}", "wants a mode"},
      {"guard: {rules: {mode: heal}}", "wants a list"},
      {"guard: {rules: [{modus: heal}]}", "modus"},
      {"guard: {limits: {burst: 0}}", "burst"},
      {"guard: {limits: {burst: many}}", "burst"},
      {"web: {listen: nowhere}", "address:port"},
      {"web: {socket: relative}", "absolute"},
      {"cdi: {hook: holdfast-runtime}", "cdi.hook wants an absolute path"},
      {"journal: {megabytes: -1}", "megabytes"},
      {"gard: {}", "gard"},
  };
  for (const auto& [text, part] : cases) {
    const Result<Config> config = parse_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  }
}

TEST(ParseConfig, TrustsPodsByNamespaceAndName) {
  const Result<Config> config = parse_config(R"(
trust:
  - {namespace: gpu-operator, pod: "nvidia-dcgm-*"}
  - {namespace: monitoring, container: exporter}
)");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->trust.size(), 2U);
  EXPECT_EQ(config->trust[0], (container::TrustRule{"gpu-operator", "nvidia-dcgm-*", std::nullopt}));
  EXPECT_EQ(config->trust[1], (container::TrustRule{"monitoring", std::nullopt, "exporter"}));
  for (const char* text : {"trust: {}", "trust: [{pod: x}]", "trust: [{namespace: a, label: b}]", "trust: [a]"}) {
    EXPECT_FALSE(parse_config(text)) << text;
  }
}

TEST(Config, RefusesARuleForAClassOrAnEngineThatDoesNotExist) {
  const auto error_of = [](const std::string& rule) {
    const Result<Config> config = parse_config("guard: {rules: [{mode: heal}, {" + rule + ", mode: observe}]}");
    return config ? "" : config.error().message;
  };
  EXPECT_EQ(error_of("class: nvidea"), "config: guard.rules[1]: no device class 'nvidea'; did you mean nvidia?");
  EXPECT_NE(error_of("class: gpus").find("no device class 'gpus'; there are "), std::string::npos);
  EXPECT_EQ(error_of("engine: dokcer"), "config: guard.rules[1]: no engine 'dokcer'; did you mean docker?");
  EXPECT_EQ(error_of("engine: moby"),
            "config: guard.rules[1]: no engine 'moby'; there are containerd, cri-o, crun, docker, lxc, podman, runc");
  for (const char* rule : {"class: nvidia", "class: 'nvid*'", "class: '[n]pu'", "engine: 'dokc?r'"}) {
    EXPECT_EQ(error_of(rule), "") << rule;
  }
  for (const std::string_view engine : container::kEngineNames) {
    EXPECT_EQ(error_of("engine: " + std::string(engine)), "");
  }
}

TEST(Config, RefusesASpecOfAClassThatDoesNotExist) {
  EXPECT_TRUE(parse_config("cdi: {file: /etc/cdi/x.yaml, class: amd}"));
  const Result<Config> config = parse_config({{"a.yaml", ""}, {"b.yaml", "cdi: {class: nvidea}"}});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, "b.yaml: config: cdi.class: no device class 'nvidea'; did you mean nvidia?");
}

TEST(Config, LetsARuleNameAClassOfALaterFile) {
  const std::vector<ConfigFile> files = {{"a.yaml", "guard: {rules: [{class: npu, mode: observe}]}"},
                                         {"b.yaml", "guard: {rules: [{class: fuse, mode: lock}]}"},
                                         {"c.yaml", kNpu}};
  EXPECT_TRUE(parse_config(files));
  const Result<Config> without = parse_config(std::vector(files.begin(), files.begin() + 2));
  ASSERT_FALSE(without);
  EXPECT_TRUE(without.error().message.starts_with("a.yaml: config: guard.rules[0]: no device class 'npu'"))
      << without.error().message;
}

TEST(ParseConfig, SuggestsOptionsOfTheCpuManager) {
  EXPECT_EQ(parse_config("cpus: {options: [full-pcpu-only]}").error().message,
            "config: cpus.options: unknown CPU Manager Policy option: \"full-pcpu-only\"; did you mean "
            "full-pcpus-only?");
  const Result<Config> frog = parse_config("cpus: {options: {frog: true}}");
  ASSERT_FALSE(frog);
  EXPECT_NE(frog.error().message.find("; there are align-by-socket, "), std::string::npos) << frog.error().message;
}

TEST(ParseConfig, SuggestsKeys) {
  EXPECT_EQ(parse_config("guard: {mod: heal}").error().message, "config: guard: unknown key 'mod'; did you mean mode?");
}

}  // namespace
}  // namespace hf::config
