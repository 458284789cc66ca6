#include <gtest/gtest.h>

#include "adapters/node_report/node_document.h"
#include "adapters/node_report/pods.h"
#include "core/base/text.h"
#include "render/blame.h"
#include "render/cpu.h"
#include "render/host.h"

namespace hf::node_report {
namespace {

using namespace std::string_literals;

std::string pod_json(const std::string& metadata, const std::string& spec) {
  return R"({"metadata":{)" + metadata + R"(},"spec":{)" + spec +
         R"(},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})";
}

TEST(Pods, AreReadFromKubectlsList) {
  const std::string one =
      pod_json(R"("namespace":"holdfast","name":"guard-x","labels":{"deep":"er"})",
               R"("nodeName":"gpu-7","containers":[{"name":"guard","env":[{"a":{"b":[{"c":1}]}}]}])");
  const Result<std::vector<report::PodEntry>> pods = parse_pods(R"({"kind":"List","items":[)" + one + "]}");
  ASSERT_TRUE(pods) << pods.error().message;
  ASSERT_EQ(pods->size(), 1U);
  const report::PodEntry& pod = pods->front();
  EXPECT_EQ(title_of(pod), "holdfast/guard-x");
  EXPECT_EQ(pod.node, "gpu-7");
  EXPECT_EQ(pod.phase, "Running");
  EXPECT_TRUE(pod.is_ready);
  EXPECT_FALSE(pod.is_ending);
  EXPECT_EQ(pod.containers, std::vector{"guard"s});
  const Result<report::PodEntry> ending = parse_pod(
      pod_json(R"("namespace":"a","name":"b","deletionTimestamp":"2026-11-15T05:00:00Z")", R"("containers":[])"));
  ASSERT_TRUE(ending) << ending.error().message;
  EXPECT_TRUE(ending->is_ending);
  EXPECT_EQ(ending->node, "");
}

TEST(Pods, AreRefusedWhereANameIsNone) {
  for (const auto& [metadata, spec, names] :
       {std::tuple(R"("namespace":"-A","name":"x")", "", "'-A'"),
        std::tuple(R"("namespace":"a","name":"x;y")", "", "'x;y'"), std::tuple(R"("namespace":"a")", "", "name"),
        std::tuple(R"("namespace":"a","name":"x")", R"("nodeName":"\u001b[31m")", "node")}) {
    const Result<report::PodEntry> pod = parse_pod(pod_json(metadata, spec));
    ASSERT_FALSE(pod) << metadata;
    EXPECT_NE(pod.error().message.find(names), std::string::npos) << pod.error().message;
  }
  EXPECT_FALSE(parse_pods("[]"));
  EXPECT_FALSE(parse_pods("{}"));
  EXPECT_FALSE(parse_pods(R"({"items":[7]})"));
}

TEST(NodeDocument, IsReadBackFromADoctor) {
  report::DoctorReport report;
  report.findings = {{.code = "HF-101",
                      .severity = report::Severity::critical,
                      .subject = "train",
                      .container = "4f1c",
                      .what = "lost it",
                      .because = {},
                      .evidence = {"a", "b"},
                      .cure = {"holdfast heal train", std::string(5000, 'x')},
                      .nodes = {},
                      .needs_all_cures = true}};
  report.containers = 2;
  report.states = {{"lost", 1}, {"ok", 1}};
  report.guard = "runs";
  const Result<report::DoctorReport> read = parse_doctor(render_json(report));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(report::summary_line(*read), report::summary_line(report));
  EXPECT_EQ(read->guard, "runs");
  const report::Finding& finding = read->findings.front();
  EXPECT_EQ(finding.code, "HF-101");
  EXPECT_EQ(finding.evidence, report.findings.front().evidence);
  EXPECT_TRUE(finding.needs_all_cures);
  EXPECT_EQ(finding.cure, (std::vector{"holdfast heal train"s, "holdfast doctor"s}));  // never a part of a command
}

TEST(NodeDocument, IsReadBackFromPs) {
  report::ContainerList list;
  report::ContainerLine& line = list.lines.emplace_back();
  line.container.id.value = std::string(64, 'a');
  line.container.engine = "containerd";
  line.container.started_at = 1'700'000'000;
  line.container.cpus = "0-3";
  line.container.pod = container::Pod{.uid = "u", .name = "train-0", .name_space = "ml", .container = "main"};
  line.state = container::State::at_risk;
  container::OwedNode owed;
  owed.path = "/dev/nvidia3";
  owed.device_class = "nvidia";
  line.entitlement.nodes = {owed};
  const Result<report::ContainerList> read = parse_containers(render_json(list));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(cells_of(read->lines.front(), 1'700'000'060), cells_of(line, 1'700'000'060));
}

TEST(NodeDocument, IsReadBackFromBlame) {
  report::BlameRecord record;
  record.number = 7;
  record.at = 1'700'000'000'123;
  record.container = "train-0/main";
  record.name_space = "ml";
  record.devices = {"/dev/nvidia0"};
  record.action = report::Action::healed;
  record.loss_ns = 38200;
  const Result<std::vector<report::BlameRecord>> read = parse_blame(render_json(std::vector{record}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(cells_of(read->front()), cells_of(record));
}

TEST(NodeDocument, IsReadBackFromCpuStatus) {
  report::CpuStatus status;
  report::CpuContainer& one = status.containers.emplace_back();
  one.title = "train-0/main";
  one.is_exclusive = true;
  one.cpus = *cpu::parse_cpu_set("4-7");
  one.nodes = {cpu::NumaId{1}};
  one.distance = 10;
  one.problem = "not enough";
  status.pool = *cpu::parse_cpu_set("0-3");
  const Result<report::CpuStatus> read = parse_cpu_status(render_json(status));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(cells_of(read->containers.front()), cells_of(one));
  EXPECT_EQ(to_string(read->pool), "0-3");
}

TEST(NodeDocument, OfAnotherSchemaIsNotMisread) {
  const auto error_of = [](std::string_view text) {
    const Result<report::DoctorReport> read = parse_doctor(text);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error_of(R"({"version":2,"findings":[]})"),
            "its answer has version 2 of the schema; this program reads version 1");
  EXPECT_EQ(error_of(R"({"findings":[]})"), "its answer has no version of the schema");
  EXPECT_EQ(error_of(R"({"version":1,"containers":[]})"), "its answer has no list of findings");
  EXPECT_EQ(error_of(R"({"version":1,"findings":[{"severity":"dire"}]})"),
            "its answer has the unknown severity 'dire'");
  EXPECT_EQ(error_of("<html>"), "parse its answer: line 1, column 1: this is no JSON");
  EXPECT_EQ(error_of(R"({"version":1,"findings":)" + std::string(100, '[') + std::string(100, ']') + "}"),
            "parse its answer: it is nested too deep");
  std::string many = R"({"version":1,"findings":[0)";
  for (int i = 0; i < 20'000; ++i) {
    many += ",0";
  }
  EXPECT_EQ(error_of(many + "]}"), "its answer has more than 20000 findings");
  EXPECT_FALSE(parse_containers(R"({"version":1,"containers":[{"state":"odd"}]})"));
  EXPECT_FALSE(parse_cpu_status(R"({"version":1,"containers":[{"cpus":"x"}]})"));
  EXPECT_FALSE(parse_blame(R"({"version":1,"records":[7]})"));
}

TEST(NodeDocument, HasNoControlCharactersAndNoEndlessTexts) {
  const auto is_safe = [](const std::string& text) { return text.size() <= 1024 && printable(text) == text; };
  const std::string huge(100'000, 'x');
  const std::string evil = R"("\u0001red\u0005\u001b[2J)" + huge + "\"";
  const auto doctor = parse_doctor(R"({"version":1,"guard":)" + evil + R"(,"findings":[{"severity":"note","verdict":)" +
                                   evil + R"(,"evidence":[)" + evil + R"(],"cure":["holdfast heal '\u0001'"]}]})");
  ASSERT_TRUE(doctor) << doctor.error().message;
  EXPECT_TRUE(is_safe(doctor->guard));
  EXPECT_TRUE(is_safe(doctor->findings.front().what));
  EXPECT_TRUE(is_safe(doctor->findings.front().evidence.front()));
  EXPECT_EQ(doctor->findings.front().cure, std::vector{"holdfast doctor"s}) << "never another command";
  const auto blame = parse_blame(R"({"version":1,"records":[{"at":"2026-11-15T05:14:08.123Z","kind":"attach",)"
                                 R"("hierarchy":"v2","action":"none","container":)" +
                                 evil + R"(,"text":"c 195:0 rw\n","devices":[)" + evil + R"(],"writer":{"name":)" +
                                 evil + R"(,"parents":[{"name":)" + evil + "}]}}]}");
  ASSERT_TRUE(blame) << blame.error().message;
  const report::BlameRecord& record = blame->front();
  EXPECT_TRUE(is_safe(record.container));
  EXPECT_TRUE(is_safe(record.devices.front()));
  EXPECT_TRUE(is_safe(record.writer.name));
  EXPECT_TRUE(is_safe(record.writer.parents.front().name));
  EXPECT_EQ(record.text, "c 195:0 rw");
}

// Such an object would be searched for each of its keys.
TEST(NodeDocument, WithTooManyKeysIsRefused) {
  const auto object_of = [](int keys) {
    std::string text = R"({"version":1,"findings":[],"containers":[],"records":[],"x":{"k":":{[\"")";
    for (int i = 1; i < keys; ++i) {
      text += ",\"k" + std::to_string(i % 7) + "\":[{}]";
    }
    return text + "}}";
  };
  EXPECT_TRUE(parse_doctor(object_of(256)));
  EXPECT_TRUE(on_one_line(object_of(256)));
  const std::string wide = object_of(257);
  const auto error_of = [](const auto& read) { return read ? "" : read.error().message; };
  for (const std::string& error :
       {error_of(parse_doctor(wide)), error_of(parse_containers(wide)), error_of(parse_blame(wide)),
        error_of(parse_cpu_status(wide)), error_of(on_one_line(wide)), error_of(on_one_line_about(wide, {}))}) {
    EXPECT_EQ(error, "parse its answer: an object has more than 256 keys");
  }
}

TEST(NodeDocument, OnOneLineHasOnlyWhatIsAboutAPod) {
  const report::PodName pod = {.name_space = "ml", .name = "train"};
  EXPECT_EQ(*on_one_line_about(R"({"z":1,"containers":[{"pod":{"name":"train","namespace":"ml"}},)"
                               R"({"pod":{"name":"train","namespace":"x"}},{"pod":null,"namespace":"ml"},7]})",
                               pod),
            R"({"z":1,"containers":[{"pod":{"name":"train","namespace":"ml"}}]})");
  EXPECT_EQ(
      *on_one_line_about(R"({"records":[{"container":"train/a","namespace":"ml"},)"
                         R"({"container":"train/a","namespace":"x"},{"container":"other/train","namespace":"ml"},)"
                         R"({"container":"trainer/a","namespace":"ml"}]})",
                         pod),
      R"({"records":[{"container":"train/a","namespace":"ml"}]})");
  EXPECT_EQ(*on_one_line_about(R"({"containers":3})", pod), R"({"containers":3})");
}

TEST(NodeDocument, OnOneLineKeepsTheOrderOfItsKeys) {
  EXPECT_EQ(*on_one_line("{\n  \"b\": 1,\n  \"a\": \"x\\ny\"\n}\n"), R"({"b":1,"a":"x\ny"})");
}

}  // namespace
}  // namespace hf::node_report
