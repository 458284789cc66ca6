#include "services/cluster/reporter_test.h"

namespace hf::cluster {
namespace {

using apiserver::Request;
using apiserver::Response;
using container::State;
using Json = nlohmann::json;

TEST_F(ReporterTest, TaintsTheNodeWhileItIsFalse) {
  set(false, true, true);
  const std::string clean =
      R"({"metadata": {"resourceVersion": "5"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})";
  answers_ = {Response{200}, Response{200, clean}};
  run(60, State::ok);
  ASSERT_EQ(sent_.size(), 2U);  // condition, and the taints are read
  EXPECT_EQ(sent_[1].method, "GET");
  answers_ = {Response{200}, Response{200, clean}, Response{409}, Response{200, clean}, Response{200}};
  run(60, State::lost);
  ASSERT_EQ(sent_.size(), 7U);
  EXPECT_EQ(sent_[4].content_type, apiserver::kMerge);
  const Json patch = Json::parse(sent_[6].body);
  EXPECT_EQ(patch["metadata"]["resourceVersion"], "5");
  ASSERT_EQ(patch["spec"]["taints"].size(), 2U);
  EXPECT_EQ(patch["spec"]["taints"][0]["key"], "a");
  EXPECT_EQ(patch["spec"]["taints"][1]["key"], notice::kTaintKey);
  const std::string tainted = R"({"metadata": {"resourceVersion": "9"}, "spec": )" + patch["spec"].dump() + "}";
  answers_ = {Response{200}, Response{200, tainted}, Response{200}};
  run(60, State::ok);
  EXPECT_EQ(Json::parse(sent_.back().body)["spec"]["taints"].size(), 1U);
}

TEST_F(ReporterTest, AContainerThatRemovesItsOwnNodesTaintsNothing) {
  set(false, true, true);
  is_hosts_fault_ = false;
  answers_ = {Response{200}, Response{200, node(false)}};
  run(600, State::lost);
  EXPECT_EQ(condition_in(sent_[0])["status"], "False");
  for (const Request& request : sent_) {
    EXPECT_EQ(request.body.find(notice::kTaintKey), std::string::npos) << request.body;
  }
}

// A guard that has started again knows a loss before it knows why.
TEST_F(ReporterTest, KeepsTheTaintWhileTheCauseIsUnknown) {
  set(false, false, true);
  answers_ = {Response{200, node(false)}, Response{200}};
  run(60, State::lost);
  ASSERT_EQ(count("PATCH"), 1U);
  is_hosts_fault_ = false;
  verdict_.clear();
  run(120, State::lost);
  EXPECT_EQ(count("PATCH"), 1U);
  verdict_ = "HF-104: a node is missing";
  answers_.assign(10, Response{200, node(true)});
  run(120, State::lost);
  EXPECT_EQ(Json::parse(sent_.back().body)["spec"]["taints"].size(), 0U) << "its own doing";
}

TEST_F(ReporterTest, KeepsAPauseBetweenConflictsOfTheTaint) {
  set(false, false, true);
  for (int i = 0; i < 60; ++i) {
    answers_.push_back({200, node(false)});
    answers_.push_back({409});
  }
  run(120, State::lost);
  EXPECT_GE(count("PATCH"), 4U);
  EXPECT_LE(count("PATCH"), 6U);
}

TEST_F(ReporterTest, RemovesTheTaintOnlyOnceTheConditionIsWritten) {
  set(false, true, true);
  answers_ = {Response{409}, Response{200}, Response{200, node(true)}};
  run(30, State::ok);
  EXPECT_EQ(sent_.size(), 1U) << "the condition, refused for now";
  run(60, State::ok);
  ASSERT_EQ(sent_.size(), 4U);
  EXPECT_EQ(condition_in(sent_[1])["status"], "True");
  EXPECT_EQ(Json::parse(sent_[3].body)["spec"]["taints"].size(), 0U);
}

TEST_F(ReporterTest, SetsATaintAgainThatWasRemoved) {
  set(false, false, true);
  answers_ = {Response{200, node(false)}, Response{200}};
  run(60, State::lost);
  ASSERT_EQ(count("PATCH"), 1U);
  answers_ = {Response{200, node(false)}, Response{200}};  // by hand
  run(300, State::lost);
  EXPECT_EQ(count("GET"), 2U);
  EXPECT_EQ(count("PATCH"), 2U);
  EXPECT_EQ(Json::parse(sent_.back().body)["spec"]["taints"].size(), 1U);
}

TEST_F(ReporterTest, AsksAgainSoonForTheTaintsOfANodeThatTheServerKnewMeanwhile) {
  set(false, false, true);
  answers_ = {Response{404}, Response{200, node(false)}, Response{404}, Response{200, node(false)}, Response{200}};
  run(110, State::lost);  // 404 to the PATCH
  EXPECT_EQ(sent_.size(), 5U) << "both pauses have 30 s";
  answers_ = {Response{404}, Response{200, node(true)}};
  run(310, State::lost);
  EXPECT_EQ(sent_.size(), 7U) << "30 s after the heartbeat";
}

TEST_F(ReporterTest, TriesAForbiddenTaintWithEachHeartbeat) {
  for (const bool may_read : {false, true}) {
    set(false, false, true);
    sent_.clear();
    answers_.clear();
    for (int i = 0; i < 50; ++i) {
      answers_.push_back(may_read ? Response{200, node(false)} : Response{403});
      answers_.push_back(Response{403});
    }
    run(1200, State::lost);
    EXPECT_GE(count("GET"), 4U);
    EXPECT_LE(count("GET"), 5U);
    EXPECT_LE(count("PATCH"), 5U);
  }
}

TEST_F(ReporterTest, KeepsAPauseBetweenChangesOfTheTaint) {
  set(false, false, true);
  bool is_tainted = false;
  std::vector<std::uint64_t> changes;
  for (int i = 0; i < 240; ++i, now_ += 5 * kSecond) {
    see(i % 6 < 3 ? State::lost : State::ok);  // each for longer than a repair takes
    while (const std::optional<Reporter::Task> task = reporter_.next(moment())) {
      if (task->request.method == "PATCH") {
        is_tainted = !Json::parse(task->request.body)["spec"]["taints"].empty();
        changes.push_back(now_);
      }
      task->done(Response{200, node(is_tainted)});
    }
  }
  ASSERT_GE(changes.size(), 2U);
  for (std::size_t i = 1; i < changes.size(); ++i) {
    EXPECT_GE(changes[i] - changes[i - 1], 30 * kSecond);
  }
}

}  // namespace
}  // namespace hf::cluster
