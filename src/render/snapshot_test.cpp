#include "render/snapshot.h"
#include "core/cpu/machine.h"
#include "render/cpu.h"

#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/cpu/machine.h"
#include "render/cpu.h"

namespace hf::report {
namespace {

using container::State;

container::Container named(const std::string& id, const std::string& name) {
  container::Container made;
  made.id.value = id;
  made.name = name;
  return made;
}

ContainerStatus guarded(const std::string& name, State state) {
  ContainerStatus made;
  made.container = named("id of " + name, name);
  made.state = state;
  container::OwedNode node;
  node.path = "/dev/nvidia0";
  node.device_class = "nvidia";
  node.device = device::Device{device::Kind::character, 195, 0};
  node.access = device::Access::read | device::Access::write;
  made.owed = container::Entitlement{{node}, {}};
  container::NodeState seen;
  seen.owed = node;
  seen.diagnosis.failure =
      state == State::lost ? container::AccessFailure::cgroup_denies : container::AccessFailure::none;
  made.nodes = std::vector{seen};
  made.mode = "heal";
  return made;
}

Snapshot snapshot() {
  Snapshot made;
  made.at = made.surveyed_at = 1'794'719'648'123;
  made.version = "0.1.0";
  made.tiers.has_v2 = true;
  made.tiers.v2 = container::Tier::tracepoints;
  made.containers = {guarded("web", State::ok), guarded("gone", State::lost), guarded("soon", State::at_risk)};
  made.containers.push_back({});
  made.findings =
      std::vector<Finding>{{"HF-101", Severity::critical, "gone", "id of gone", "lost it", {}, {"read"}, {"mend it"}}};
  device::Unit unit;
  unit.device_class = "nvidia";
  unit.name = "0";
  unit.nodes = {"/dev/nvidia0"};
  unit.numa = 1;
  made.inventory.units.push_back(unit);
  made.counters.heals[{"healed", "ok"}] = 3;
  made.counters.events["attach"] = 4;
  made.counters.loss_duration.add(38'000);
  made.records.push_back(std::make_shared<const BlameRecord>());
  return made;
}

bool has_line(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

// Every series occurs once, each metric has one TYPE, and all is UTF-8 without control characters.
void expect_well_formed(const std::string& page) {
  std::set<std::string> seen;
  std::set<std::string> types;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line, as_utf8(line));
    EXPECT_EQ(line.find_first_of("\r\x01\x1b"), std::string::npos) << line;
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(types.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
    }
    if (!line.starts_with('#')) {
      EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
      EXPECT_TRUE(line.starts_with("holdfast_")) << line;
    }
  }
  EXPECT_TRUE(page.ends_with('\n'));
}

TEST(Histogram, CountsIntoTheBucketThatHoldsTheValue) {
  Histogram histogram;
  histogram.add(0);
  histogram.add(10'000);
  histogram.add(10'001);
  histogram.add(700'000'000'000);
  EXPECT_EQ(histogram.counts[0], 2U);
  EXPECT_EQ(histogram.counts[1], 1U);
  EXPECT_EQ(histogram.counts.back(), 1U);
  EXPECT_EQ(histogram.total(), 4U);
  EXPECT_EQ(histogram.sum, 700'000'020'001U);
}

TEST(Metrics, SayWhatTheSnapshotSays) {
  const std::string page = render_metrics(snapshot());
  for (const char* line : {
           "holdfast_build_info{version=\"0.1.0\"} 1",
           "holdfast_blind 0",
           "holdfast_tracer_mode{hierarchy=\"v2\",tier=\"tracepoints\"} 1",
           "holdfast_last_scan_timestamp_seconds 1794719648.123",
           "holdfast_containers{state=\"lost\"} 1",
           "holdfast_containers{state=\"not owed\"} 1",
           "holdfast_container_device_accessible{container=\"web\",namespace=\"\",class=\"nvidia\"} 1",
           "holdfast_container_device_accessible{container=\"gone\",namespace=\"\",class=\"nvidia\"} 0",
           "holdfast_container_at_risk{container=\"soon\",namespace=\"\",class=\"nvidia\"} 1",
           "holdfast_containers_left_out 0",
           "holdfast_findings{code=\"HF-101\",severity=\"critical\"} 1",
           "holdfast_heals_total{action=\"failed\",result=\"failed\"} 0",
           "holdfast_heals_total{action=\"healed\",result=\"ok\"} 3",
           "holdfast_events_total{kind=\"attach\"} 4",
           "holdfast_loss_duration_seconds_bucket{le=\"2.5e-05\"} 0",
           "holdfast_loss_duration_seconds_bucket{le=\"5e-05\"} 1",
           "holdfast_loss_duration_seconds_bucket{le=\"+Inf\"} 1",
           "holdfast_loss_duration_seconds_sum 3.8e-05",
           "holdfast_loss_duration_seconds_count 1",
           "# TYPE holdfast_losses_total counter",
           "# TYPE holdfast_heal_duration_seconds histogram",
       }) {
    EXPECT_TRUE(has_line(page, line)) << line << " in\n" << page;
  }
  expect_well_formed(page);
  expect_well_formed(render_metrics({}));
}

TEST(Metrics, CallDockersNamespaceDocker) {
  Snapshot made = snapshot();
  container::Container of_docker = named("id of web", "web");
  of_docker.engine = "docker";
  of_docker.name_space = "moby";
  made.containers.front().container = of_docker;
  const std::string page = render_metrics(made);
  EXPECT_TRUE(
      has_line(page, R"(holdfast_container_device_accessible{container="web",namespace="docker",class="nvidia"} 1)"))
      << page;
}

TEST(Metrics, EscapeHostileNames) {
  Snapshot hostile = snapshot();
  hostile.containers = {guarded("a\"} 1\nfake{x=\"", State::ok), guarded("back\\slash", State::ok),
                        guarded("\xff\xc0\x80\r\x1b", State::ok)};
  const std::string page = render_metrics(hostile);
  expect_well_formed(page);
  EXPECT_NE(page.find(R"({container="a\"} 1?fake{x=\"",)"), std::string::npos) << page;
  EXPECT_NE(page.find(R"({container="back\\slash",)"), std::string::npos) << page;
}

TEST(Metrics, TellContainersOfTheSameNameApart) {
  Snapshot same_titles = snapshot();
  same_titles.containers = {guarded("web", State::ok), guarded("web", State::ok), guarded("web", State::ok)};
  same_titles.containers[1].container = named("other", "web");
  const std::string page = render_metrics(same_titles);
  expect_well_formed(page);
  EXPECT_NE(page.find("{container=\"container:other\""), std::string::npos);
  EXPECT_TRUE(has_line(page, "holdfast_containers_left_out 0"));
}

TEST(Metrics, AreBoundedAndLeaveOutTheHealthyFirst) {
  Snapshot many = snapshot();
  many.containers.clear();
  for (int i = 0; i < 1500; ++i) {
    many.containers.push_back(guarded({}, State::ok));
    many.containers.back().container = named(std::string(1000, 'n') + std::to_string(i), "c" + std::to_string(i));
  }
  many.containers.push_back(guarded("gone", State::lost));
  const std::string page = render_metrics(many);
  expect_well_formed(page);
  EXPECT_TRUE(has_line(page, "holdfast_containers_left_out 501"));
  EXPECT_NE(page.find("{container=\"gone\""), std::string::npos);
  EXPECT_LT(page.size(), std::size_t(1) << 20);
}

TEST(Metrics, NameFiftyWritersAtMostAndNeverCountDown) {
  Counters counters;
  for (int i = 0; i < 200; ++i) {
    container::Writer writer;
    writer.name = "writer-" + std::to_string(i % 120);
    counters.count_loss("attach", writer);
    counters.count_loss("write", writer);
  }
  counters.count_loss("attach", {});
  std::set<std::string> writers;
  std::uint64_t total = 0;
  for (const auto& [key, count] : counters.losses) {
    writers.insert(key.second);
    total += count;
  }
  EXPECT_EQ(writers.size(), Counters::kMostWriters);
  EXPECT_TRUE(writers.contains("other"));
  EXPECT_EQ(total, 401U);
  Snapshot made;
  for (int i = 0; i < 120; ++i) {
    made.counters.losses[{"attach", "named-" + std::to_string(i)}] = 1;
  }
  const std::string page = render_metrics(made);
  expect_well_formed(page);
  EXPECT_TRUE(has_line(page, "holdfast_losses_total{cause=\"attach\",writer=\"other\"} 71")) << page;
}

TEST(Metrics, NameTheServiceBeforeTheProcess) {
  Counters counters;
  container::Writer writer;
  writer.name = "runc";
  counters.count_loss("attach", writer);
  writer.service = "kubelet";
  counters.count_loss("attach", writer);
  EXPECT_EQ((counters.losses.at({"attach", "kubelet"})), 1U);
  EXPECT_EQ((counters.losses.at({"attach", "runc"})), 1U);
}

resource::OfferStatus offer_with_a_problem() {
  resource::OfferStatus status;
  status.offer.resource = "nvidia.com/gpu";
  status.offer.devices = {{"GPU-a::0", "GPU-a", "GPU-a", {}, {}, "/dev/nvidia-uvm is \"missing\""},
                          {"GPU-a::1", "GPU-a", "GPU-a", {}, {}, "/dev/nvidia-uvm is \"missing\""},
                          {"GPU-b::0", "GPU-b", "GPU-b", {}, {}, {}}};
  status.is_connected = true;
  status.allocated = 4;
  status.refused = 1;
  return status;
}

TEST(Metrics, SayWhyADeviceIsKeptFromKubelet) {
  EXPECT_EQ(render_metrics(snapshot()).find("holdfast_resource"), std::string::npos);
  Snapshot offering = snapshot();
  offering.offers = {offer_with_a_problem()};
  const std::string page = render_metrics(offering);
  expect_well_formed(page);
  for (
      const char* line :
      {R"(holdfast_resource_devices{resource="nvidia.com/gpu",health="Healthy"} 1)",
       R"(holdfast_resource_devices{resource="nvidia.com/gpu",health="Unhealthy"} 2)",
       R"(holdfast_resource_device_unhealthy{resource="nvidia.com/gpu",device="GPU-a",reason="/dev/nvidia-uvm is \"missing\""} 1)",
       R"(holdfast_resource_connected{resource="nvidia.com/gpu"} 1)",
       R"(holdfast_resource_allocations_total{resource="nvidia.com/gpu",result="allocated"} 4)",
       R"(holdfast_resource_allocations_total{resource="nvidia.com/gpu",result="refused"} 1)"}) {
    EXPECT_TRUE(has_line(page, line)) << line << "\n" << page;
  }
  const nlohmann::json json = nlohmann::json::parse(render_json(offering));
  EXPECT_EQ(json["devices"]["offers"][0]["devices"][0]["health"], "Unhealthy");
  EXPECT_FALSE(json["devices"]["offers"][0]["devices"][2].contains("problem"));
}

TEST(SnapshotJson, HasTheVerdictThatTheMetricsHave) {
  const nlohmann::json json = nlohmann::json::parse(render_json(snapshot()));
  EXPECT_EQ(json["verdict"]["level"], "critical");
  EXPECT_EQ(json["verdict"]["headline"], "gone lost it");
  EXPECT_EQ(json["verdict"]["code"], "HF-101");
  EXPECT_EQ(json["verdict"]["cure"], nlohmann::json::array({"mend it"}));
  EXPECT_EQ(json["verdict"]["needs_all_cures"], false);
  Snapshot all_needed = snapshot();
  std::vector<Finding> findings = *all_needed.findings;
  findings.front().needs_all_cures = true;
  all_needed.findings = std::move(findings);
  EXPECT_EQ(nlohmann::json::parse(render_json(all_needed))["verdict"]["needs_all_cures"], true);
  EXPECT_EQ(json["containers"][1]["argument"], "gone");
  EXPECT_TRUE(has_line(render_metrics(snapshot()), "holdfast_verdict{level=\"critical\"} 1"));
  EXPECT_TRUE(has_line(render_metrics(snapshot()), "holdfast_verdict{level=\"good\"} 0"));
}

TEST(SnapshotJson, SaysTheSameAndLeavesOutWhatIsAbsent) {
  const std::string text = render_json(snapshot());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["at"], "2026-11-15T05:14:08.123Z");
  EXPECT_EQ(json["tiers"]["v2"], "tracepoints");
  EXPECT_FALSE(json["tiers"].contains("v1"));
  EXPECT_FALSE(json.contains("why_blind"));
  EXPECT_EQ(json["containers"].size(), 4U);
  EXPECT_EQ(json["containers"][1]["state"], "lost");
  EXPECT_EQ(json["containers"][1]["nodes"][0]["trouble"], "cgroup-denies");
  EXPECT_EQ(json["containers"][1]["nodes"][0]["troubled"], true);
  EXPECT_EQ(json["containers"][0]["nodes"][0]["device"]["major"], 195);
  EXPECT_EQ(json["findings"][0]["cure"][0], "mend it");
  EXPECT_EQ(json["devices"]["units"][0]["containers"].size(), 3U);
  EXPECT_EQ(json["devices"]["units"][0]["numa"], 1);
  EXPECT_EQ(json["records"][0]["action"], "none");
  EXPECT_EQ(json["counters"]["loss_duration"]["count"], 1);
  EXPECT_TRUE(nlohmann::json::accept(render_json(Snapshot{})));
}

TEST(SnapshotJson, AcceptsAnyBytes) {
  Snapshot hostile = snapshot();
  hostile.containers = {guarded("\xff\"\n</script>", State::ok)};
  hostile.host_name = "\xc3";
  EXPECT_TRUE(nlohmann::json::accept(render_json(hostile)));
}

TEST(Utf8, ReplacesInvalidBytes) {
  EXPECT_EQ(as_utf8("aä€😀"), "aä€😀");
  for (const char* wrong : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) {
    EXPECT_NE(as_utf8(wrong).find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_to("abc", 3), "abc");
  EXPECT_EQ(cut_to("abcdef", 5), "ab…");
  EXPECT_EQ(cut_to("aäääää", 6), "aä…");
  EXPECT_EQ(cut_to(cut_to(std::string(100, 'x'), 50), 50), cut_to(std::string(100, 'x'), 50));
}

std::shared_ptr<const CpuStatus> managed_cpus() {
  auto status = std::make_shared<CpuStatus>();
  status->topology = *cpu::find_machine("workstation");
  status->online = cpu::all_cpus(status->topology);
  status->pool = *cpu::parse_cpu_set("0-3,8-11");
  status->reserved = *cpu::parse_cpu_set("0");
  status->state.shared = status->pool;
  status->state.entries[{"pod", "train"}] = *cpu::parse_cpu_set("4-7,12-15");
  CpuContainer owner;
  owner.title = "pod/train";
  owner.id = "abc";
  owner.is_exclusive = true;
  owner.requested = 8;
  owner.cpus = owner.present = status->state.entries.begin()->second;
  owner.device_nodes = owner.nodes = {cpu::NumaId{0}};
  owner.distance = 10;
  CpuContainer waiting;
  waiting.title = "web";
  waiting.requested = 99;
  waiting.cpus = waiting.present = status->pool;
  waiting.problem = "not enough cpus available";
  status->containers = {owner, waiting};
  return status;
}

TEST(SnapshotCpus, AreInJsonMetricsTextAndPicture) {
  Snapshot snapshot;
  EXPECT_FALSE(nlohmann::json::parse(render_json(snapshot)).contains("cpus"));
  EXPECT_EQ(render_metrics(snapshot).find("holdfast_cpus"), std::string::npos);
  snapshot.cpus = managed_cpus();
  const nlohmann::json json = nlohmann::json::parse(render_json(snapshot))["cpus"];
  EXPECT_TRUE(json["managed"]);
  EXPECT_EQ(json["pool"], "0-3,8-11");
  EXPECT_EQ(json["containers"][0]["cpus"], "4-7,12-15");
  EXPECT_EQ(json["containers"][0]["distance"], 10);
  EXPECT_EQ(json["containers"][1]["problem"], "not enough cpus available");
  EXPECT_FALSE(json["containers"][0].contains("problem"));
  const std::string metrics = render_metrics(snapshot);
  EXPECT_NE(metrics.find("holdfast_cpus{use=\"exclusive\"} 8"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("holdfast_cpus{use=\"shared\"} 7"), std::string::npos);
  EXPECT_NE(metrics.find("holdfast_container_cpus{container=\"pod/train\",id=\"abc\",cpus=\"4-7,12-15\"} 8"),
            std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("holdfast_container_cpus_distance{container=\"pod/train\",id=\"abc\"} 10"), std::string::npos);
  const std::string text = render_text(*snapshot.cpus);
  EXPECT_NE(text.find("1 container has CPUs of its own; not as it should be: 1"), std::string::npos) << text;
  EXPECT_NE(render_svg(*snapshot.cpus).find("pod/train"), std::string::npos);
  CpuStatus off;
  off.problem = "kubelet assigns CPUs itself";
  snapshot.cpus = std::make_shared<const CpuStatus>(off);
  EXPECT_NE(render_metrics(snapshot).find("holdfast_cpus_managed 0"), std::string::npos);
  EXPECT_NE(render_text(off).find("CPUs are not managed"), std::string::npos);
}

}  // namespace
}  // namespace hf::report
