#include <gtest/gtest.h>

#include "core/base/text.h"
#include "services/fleet/answer.h"
#include "services/fleet/question.h"

namespace hf::fleet {
namespace {

using kernel::CommandEnd;
using report::Question;

const report::FleetMember kMember = {.node = "gpu-7", .name_space = "holdfast", .pod = "guard-x", .obstacle = {}};

Inquiry inquiry_of(Question question) {
  Inquiry inquiry;
  inquiry.question = question;
  inquiry.kubectl = {"/usr/bin/kubectl", "--context=x"};
  return inquiry;
}

CommandEnd ended(int exit_code, const std::string& output, const std::string& errors = "") {
  return {.kind = CommandEnd::Kind::ended, .status = exit_code << 8, .output = output, .errors = errors};
}

report::NodeAnswer answer_to(const Inquiry& inquiry, const CommandEnd& end) {
  const kernel::PoolLimits limits;
  return read_answer({inquiry, limits, report::Notes::hidden, 0}, kMember, end);
}

TEST(FleetQuestion, IsACommandOfKubectl) {
  Inquiry inquiry = inquiry_of(Question::doctor);
  const std::string head = "/usr/bin/kubectl --context=x ";
  EXPECT_EQ(join(list_command(inquiry), " "), head + "get pods -A -l app.kubernetes.io/name=holdfast -o json");
  inquiry.name_space = "gpu";
  EXPECT_EQ(join(list_command(inquiry), " "), head + "get pods -n gpu -l app.kubernetes.io/name=holdfast -o json");
  const std::string exec = head + "exec -n holdfast guard-x -c guard -- holdfast ";
  EXPECT_EQ(join(exec_command(inquiry, kMember), " "), exec + "doctor -o json");
  inquiry.options = {"--since=1h"};
  inquiry.pod = PodName{"ml", "train-0"};
  for (const auto& [question, command] :
       {std::pair(Question::doctor, "doctor ml/train-0"), std::pair(Question::ps, "ps"),
        std::pair(Question::blame, "blame ml/train-0"), std::pair(Question::cpu_status, "cpu status")}) {
    inquiry.question = question;
    EXPECT_EQ(join(exec_command(inquiry, kMember), " "), exec + command + " --since=1h -o json");
  }
  EXPECT_EQ(join(pod_command(inquiry), " "), head + "get pod train-0 -n ml -o json");
  inquiry.pod->name_space.clear();
  EXPECT_EQ(join(pod_command(inquiry), " "), head + "get pod train-0 -o json");
}

TEST(FleetQuestion, NamesAPodInTwoWays) {
  EXPECT_EQ(parse_pod_name("ml/train", "")->name_space, "ml");
  EXPECT_EQ(parse_pod_name("ml/train", "ml")->name, "train");
  EXPECT_EQ(parse_pod_name("train", "ml")->name_space, "ml");
  EXPECT_EQ(parse_pod_name("train", "")->name_space, "");
  for (const auto& [text, name_space] : {std::pair("ml/train", "other"), std::pair("/train", ""), std::pair("ml/", ""),
                                         std::pair("a/b/c", ""), std::pair("--all", ""), std::pair("Train", "")}) {
    EXPECT_FALSE(parse_pod_name(text, name_space)) << text;
  }
}

TEST(FleetAnswer, IsTheDocumentWhateverTheExitCode) {
  const std::string document = R"({"version":1,"findings":[{"code":"HF-101","severity":"critical"}]})";
  const report::NodeAnswer answer =
      answer_to(inquiry_of(Question::doctor), ended(1, document, "command terminated with exit code 1\n"));
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.level, report::Level::critical);
}

TEST(FleetAnswer, NamesTheReasonWhereThereIsNone) {
  const CommandEnd slow{.kind = CommandEnd::Kind::timed_out, .status = 0, .output = "", .errors = ""};
  const CommandEnd huge{.kind = CommandEnd::Kind::too_long, .status = 0, .output = "", .errors = ""};
  const CommandEnd killed{.kind = CommandEnd::Kind::ended, .status = 9, .output = "", .errors = ""};
  for (const auto& [end, reason] : {
           std::pair(slow, "no answer within 20 s"),
           std::pair(huge, "its answer is longer than 8 MiB"),
           std::pair(killed, "kubectl was ended by signal 9"),
           std::pair(ended(0, "\n"), "its answer is empty"),
           std::pair(ended(7, ""), "kubectl ended with exit code 7"),
           std::pair(ended(2, "", "holdfast: no container 'x'\ncommand terminated with exit code 2\n"),
                     "holdfast: no container 'x'"),
           std::pair(ended(1, "", "Error from server (NotFound): pods \"x\" not found\n"),
                     "Error from server (NotFound): pods \"x\" not found"),
           std::pair(ended(1, "{\"ver", "error: connection lost\n"),
                     "parse its answer: line 1, column 6: this is no JSON; error: connection lost"),
       }) {
    EXPECT_EQ(answer_to(inquiry_of(Question::doctor), end).error, reason);
  }
}

TEST(FleetAnswer, IsOnlyAboutThePodThatIsAskedFor) {
  Inquiry inquiry = inquiry_of(Question::ps);
  inquiry.pod = PodName{"ml", "train"};
  const std::string containers =
      R"({"version":1,"containers":[{"state":"lost","pod":{"name":"train","namespace":"other"}},)"
      R"({"state":"lost","pod":null},{"state":"ok","pod":{"name":"train","namespace":"ml","container":"main"}}]})";
  const report::NodeAnswer answer = answer_to(inquiry, ended(1, containers));
  EXPECT_EQ(answer.rows.size(), 1U);
  EXPECT_EQ(answer.level, report::Level::good);
  inquiry.question = Question::cpu_status;
  const std::string cpus = R"({"version":1,"containers":[{"container":"train/main","namespace":"ml","cpus":"1"},)"
                           R"({"container":"train/main","namespace":"other","cpus":"2"},)"
                           R"({"container":"trainer/main","namespace":"ml","cpus":"2"}]})";
  EXPECT_EQ(answer_to(inquiry, ended(0, cpus)).rows.size(), 1U);
  inquiry.question = Question::blame;
  std::string records;
  for (const std::string place :
       {R"("namespace":"ml","container":"train/main")", R"("namespace":"other","container":"train/main")",
        R"("namespace":"ml","container":"other/train")"}) {
    records += (records.empty() ? "{" : ",{") + place + R"(,"at":"2026-11-15T05:14:08.123Z","kind":"attach",)" +
               R"("hierarchy":"v2","action":"none"})";
  }
  const std::string blame = R"({"version":1,"records":[)" + records + "]}";
  EXPECT_EQ(answer_to(inquiry, ended(0, blame)).rows.size(), 1U);
  for (const std::string& document : {containers, cpus, blame}) {
    const std::string kept = *document_of(inquiry, document);
    EXPECT_EQ(kept.find("other"), std::string::npos) << kept;
  }
}

}  // namespace
}  // namespace hf::fleet
