// Asking nodes through a kubectl that is a script: it answers from files.
#include <fstream>

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "services/fleet/fleet.h"
#include "support/fake_host.h"

namespace hf::fleet {
namespace {

constexpr const char* kGood = R"({"version":1,"findings":[]})";
constexpr const char* kCritical = R"({"version":1,"findings":[{"code":"HF-101","severity":"critical"}]})";

// "get pods …", "get pod NAME …", or "exec -n NAMESPACE POD …"
std::string script_in(const std::string& directory) {
  return "case \"$1 $2\" in\n\"get pods\") cat " + directory + "/pods ;;\n\"get pod\") cat " + directory +
         "/pod ;;\n*) cat " + directory + "/$4 ;;\nesac\n";
}

std::string pod_on(const std::string& node, const std::string& name_space = "holdfast",
                   const std::string& phase = "Running") {
  return R"({"metadata":{"name":"guard-)" + node + R"(","namespace":")" + name_space + R"("},"spec":{"nodeName":")" +
         node + R"(","containers":[{"name":"guard"}]},"status":{"phase":")" + phase + "\"}}";
}

std::string list_of(const std::vector<std::string>& pods) { return R"({"items":[)" + join(pods, ",") + "]}"; }

Result<Answers> ask_with(test::Files files, Inquiry inquiry = {}) {
  const test::FakeHost directory(test::Files{});
  files["kubectl"] = script_in(directory.root());
  for (const auto& [name, text] : files) {
    std::ofstream(directory.root() + "/" + name) << text;
  }
  Settings settings;
  settings.inquiry = std::move(inquiry);
  settings.inquiry.kubectl = {"/bin/sh", directory.root() + "/kubectl"};
  settings.documents = Documents::kept;
  return ask(std::move(settings));
}

TEST(FleetAsk, SortsTheAnswersAndKeepsTheDocuments) {
  const Result<Answers> answers = ask_with({{"pods", list_of({pod_on("gpu-1"), pod_on("gpu-2"), pod_on("gpu-3")})},
                                            {"guard-gpu-1", kGood},
                                            {"guard-gpu-2", kCritical}});
  ASSERT_TRUE(answers) << answers.error().message;
  const std::vector<report::NodeAnswer>& nodes = answers->report.nodes;
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].member.node, "gpu-2") << "the worst one";
  EXPECT_EQ(nodes[0].level, report::Level::critical);
  EXPECT_NE(answers->document_of(nodes[0].member)->find("HF-101"), std::string::npos);
  EXPECT_EQ(nodes[1].member.node, "gpu-1");
  EXPECT_TRUE(nodes[1].has_answered()) << nodes[1].error;
  EXPECT_EQ(nodes[2].member.node, "gpu-3") << "it has no document";
  EXPECT_FALSE(nodes[2].has_answered());
  EXPECT_EQ(*answers->document_of(nodes[2].member), "");
  EXPECT_EQ(answers->report.kubectl.front(), "sh") << "cures name the program as people type it";
}

TEST(FleetAsk, DoesNotAskAPodThatIsNotRunning) {
  const Result<Answers> answers =
      ask_with({{"pods", list_of({pod_on("gpu-1", "holdfast", "Pending")})}, {"guard-gpu-1", kGood}});
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->report.nodes.size(), 1U);
  EXPECT_EQ(answers->report.nodes[0].error, "pod holdfast/guard-gpu-1 is Pending");
}

TEST(FleetAsk, AsksOnlyTheNodeOfThePod) {
  Inquiry inquiry;
  inquiry.pod = PodName{"ml", "train"};
  const Result<Answers> answers = ask_with(
      {{"pods", list_of({pod_on("gpu-1"), pod_on("gpu-2")})}, {"pod", pod_on("gpu-2", "ml")}, {"guard-gpu-2", kGood}},
      inquiry);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->report.nodes.size(), 1U);
  EXPECT_EQ(answers->report.nodes[0].member.node, "gpu-2");
}

TEST(FleetAsk, RefusesPodsThatDoNotTellWhatToAsk) {
  for (const auto& [pods, why] : {
           std::pair(list_of({}), "has a container 'guard'"),
           std::pair(list_of({pod_on("gpu-1", "a"), pod_on("gpu-2", "b")}), "are in several namespaces: a, b;"),
           std::pair(std::string("no JSON"), "the list of pods"),
       }) {
    const Result<Answers> answers = ask_with({{"pods", pods}});
    ASSERT_FALSE(answers) << pods;
    EXPECT_NE(answers.error().message.find(why), std::string::npos) << answers.error().message;
  }
}

TEST(FleetAsk, RefusesAPodOnNoNode) {
  Inquiry inquiry;
  inquiry.pod = PodName{"ml", "train"};
  const Result<Answers> answers =
      ask_with({{"pod", R"({"metadata":{"name":"train","namespace":"ml"},"spec":{}})"}}, inquiry);
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().message, "pod ml/train is on no node yet");
}

}  // namespace
}  // namespace hf::fleet
