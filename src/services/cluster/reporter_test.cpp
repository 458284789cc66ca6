#include "services/cluster/reporter.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::cluster {
namespace {

using apiserver::Request;
using apiserver::Response;
using container::State;
using Json = nlohmann::json;

constexpr std::uint64_t kSecond = 1'000'000'000;
const container::Pod kPod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};

class ReporterTest : public testing::Test {
 protected:
  Moment moment() const { return {now_, std::int64_t(now_ / 1'000'000), 0}; }

  void see(State state, const std::string& why_blind = "") {
    notice::HostState host;
    host.why_blind = why_blind;
    host.at = moment().wall;
    host.containers = {{"abc", "trainer-0/main", kPod, state, {"/dev/nvidia0"}, verdict_, is_hosts_fault_}};
    reporter_.adopt(host, moment());
  }

  // The guard is looked at every ten seconds; what is to be sent is answered at once.
  void run(std::uint64_t seconds, State state) {
    for (std::uint64_t i = 0; i < seconds; i += 10) {
      see(state);
      send();
      now_ += 10 * kSecond;
    }
  }

  void send() {
    while (const std::optional<Reporter::Task> task = reporter_.next(moment())) {
      if (task->request == apiserver::read_condition("gpu-7")) {
        ++reads_;
        task->done(present_);
        continue;
      }
      sent_.push_back(task->request);
      Response response{200};
      if (!answers_.empty()) {
        response = answers_.front();
        answers_.erase(answers_.begin());
      }
      task->done(response);
    }
  }

  std::vector<Request> sent(const std::string& part) const {
    std::vector<Request> found;
    std::ranges::copy_if(sent_, std::back_inserter(found),
                         [&part](const Request& request) { return request.path.find(part) != std::string::npos; });
    return found;
  }

  std::size_t count(const std::string& method, std::size_t from = 0) const {
    return std::size_t(std::count_if(sent_.begin() + std::ptrdiff_t(from), sent_.end(),
                                     [&method](const Request& request) { return request.method == method; }));
  }

  static std::string node(bool is_tainted) {
    const std::string ours = R"({"key": ")" + std::string(notice::kTaintKey) + R"(", "effect": "NoSchedule"})";
    return R"({"metadata": {"resourceVersion": "5"}, "spec": {"taints": [)" + (is_tainted ? ours : "") + "]}}";
  }

  static Json condition_in(const Request& request) { return Json::parse(request.body)["status"]["conditions"][0]; }

  void set(bool events, bool condition, bool taint) {
    reporter_ = Reporter({.node = "gpu-7",
                          .writes_events = events,
                          .writes_condition = condition,
                          .writes_taint = taint,
                          .started = now_});
  }

  void report(notice::Reason reason, std::int64_t seconds_ago) {
    notice::PodEvent event;
    event.pod = kPod;
    event.container = "abc";
    event.reason = reason;
    event.at = moment().wall - 1000 * seconds_ago;
    reporter_.report(event, moment());
  }

  Reporter reporter_{{.node = "gpu-7"}};
  std::vector<Request> sent_;
  std::vector<Response> answers_;
  Response present_{200, "{}"};  // the node before the first write
  int reads_ = 0;
  bool is_hosts_fault_ = true;
  std::string verdict_ = "HF-101: lost";
  std::uint64_t now_ = 1000 * kSecond;
};

TEST_F(ReporterTest, WritesTheConditionAtTheStartAndEveryFiveMinutes) {
  run(3600, State::ok);
  const std::vector<Request> writes = sent("/status");
  EXPECT_GE(writes.size(), 12U);
  EXPECT_LE(writes.size(), 14U);
  EXPECT_EQ(sent_.size(), writes.size());
  EXPECT_EQ(writes[0].path, "/api/v1/nodes/gpu-7/status");
  EXPECT_EQ(writes[0].content_type, apiserver::kStrategicMerge);
  EXPECT_EQ(condition_in(writes[0])["status"], "True");
  EXPECT_TRUE(condition_in(writes[0]).contains("lastTransitionTime"));
  EXPECT_FALSE(condition_in(writes[1]).contains("lastTransitionTime"));
}

TEST_F(ReporterTest, KeepsTheTransitionOfAnEarlierInstance) {
  present_.body = R"({"status": {"conditions": [{"type": "DeviceAccess", "status": "True"}]}})";
  run(600, State::ok);
  EXPECT_EQ(reads_, 1);
  EXPECT_FALSE(condition_in(sent("/status")[0]).contains("lastTransitionTime"));
  set(false, true, false);
  run(60, State::lost);
  EXPECT_EQ(reads_, 2);
  EXPECT_EQ(condition_in(sent("/status").back())["status"], "False");
  EXPECT_TRUE(condition_in(sent("/status").back()).contains("lastTransitionTime"));
}

TEST_F(ReporterTest, AReadThatTakesLongDelaysTheConditionOnly) {
  set(true, true, false);
  see(State::ok);
  const std::optional<Reporter::Task> read = reporter_.next(moment());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->request, apiserver::read_condition("gpu-7"));
  run(60, State::ok);
  EXPECT_TRUE(sent_.empty());
  read->done(Response{200, "{}"});
  run(10, State::ok);
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(ReporterTest, ReadsTheTransitionAgainWhereItCouldNotBeRead) {
  set(false, true, false);
  present_ = {404};  // kubelet has not registered the node
  run(60, State::ok);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(reads_, 2);
  present_ = {403};
  run(60, State::ok);
  EXPECT_EQ(reads_, 3);
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(ReporterTest, WritesAChangeOfTheConditionSoon) {
  run(600, State::ok);
  const std::size_t before = sent("/status").size();
  run(60, State::lost);
  ASSERT_EQ(sent("/status").size(), before + 1);
  const Json lost = condition_in(sent("/status").back());
  EXPECT_EQ(lost["status"], "False");
  EXPECT_EQ(lost["reason"], "DeviceLost");
  EXPECT_TRUE(lost.contains("lastTransitionTime"));
  run(60, State::ok);
  EXPECT_EQ(condition_in(sent("/status").back())["status"], "True");
}

TEST_F(ReporterTest, WritesNothingBeforeTheFirstLossesCount) {
  set(false, true, true);
  answers_ = {Response{200}, Response{200, node(true)}};
  run(10, State::lost);  // another instance has written False, and the taint
  EXPECT_TRUE(sent_.empty());
  run(30, State::lost);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(condition_in(sent_[0])["status"], "False");
  EXPECT_EQ(sent_[1].method, "GET");
}

TEST_F(ReporterTest, KeepsALossWhileTheGuardIsBlind) {
  run(60, State::lost);
  const std::size_t before = sent_.size();
  notice::HostState blind;
  blind.at = moment().wall;
  blind.why_blind = "the host was not surveyed yet";
  reporter_.adopt(blind, moment());  // it lists no container
  send();
  now_ += 10 * kSecond;
  run(30, State::unknown);
  EXPECT_EQ(sent_.size(), before);
  run(120, State::ok);
  EXPECT_EQ(Json::parse(sent("/events").back().body)["reason"], "DeviceRestored");
}

TEST_F(ReporterTest, CorrectsAConditionThatWasWrittenLate) {
  set(false, true, false);
  run(60, State::ok);
  see(State::lost);
  now_ += 10 * kSecond;
  see(State::lost);
  const std::optional<Reporter::Task> late = reporter_.next(moment());
  ASSERT_TRUE(late);
  EXPECT_EQ(condition_in(late->request)["status"], "False");
  for (int i = 0; i < 6; ++i, now_ += 10 * kSecond) {  // it waits for a server that is busy, and the loss ends
    see(State::ok);
  }
  late->done(Response{200});
  EXPECT_LE(reporter_.next_due(), now_ + 30 * kSecond);
  run(40, State::ok);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(condition_in(sent_[1])["status"], "True");
  run(60, State::ok);
  EXPECT_EQ(sent_.size(), 2U);
}

// The API server may refuse events of one namespace again and again.
TEST_F(ReporterTest, AnEventThatIsUnderWayDoesNotHoldTheCondition) {
  run(60, State::lost);
  see(State::ok);
  now_ += 20 * kSecond;
  see(State::ok);
  now_ += 120 * kSecond;
  std::optional<Reporter::Task> event = reporter_.next(moment());
  while (event && event->request.path.find("/events") == std::string::npos) {
    event->done(Response{200});
    event = reporter_.next(moment());
  }
  ASSERT_TRUE(event);
  now_ += 300 * kSecond;
  see(State::ok);
  const std::optional<Reporter::Task> condition = reporter_.next(moment());
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->request.path, "/api/v1/nodes/gpu-7/status");
  EXPECT_FALSE(reporter_.next(moment())) << "each once";
  event->done(Response{429});
  condition->done(Response{429});
  EXPECT_LE(reporter_.next_due(), now_ + 30 * kSecond);
}

TEST_F(ReporterTest, WritesAConditionAgainThatFailed) {
  set(false, true, false);
  answers_ = {Response{404}, Response{409}, Response{503}};  // the node was not registered yet, …
  run(120, State::ok);
  EXPECT_EQ(sent_.size(), 4U);
  run(60, State::ok);
  EXPECT_EQ(sent_.size(), 4U);
}

TEST_F(ReporterTest, WaitsForAHeartbeatWhereTheConditionIsForbidden) {
  set(false, true, true);
  answers_ = {Response{403}, Response{200, node(true)}};
  run(200, State::ok);
  EXPECT_EQ(sent("/status").size(), 1U);
  EXPECT_EQ(sent_.back().method, "PATCH") << "the taint does not wait for what is forbidden";
  EXPECT_EQ(Json::parse(sent_.back().body)["spec"]["taints"].size(), 0U);
}

TEST_F(ReporterTest, DoesNotFollowAConditionThatFlaps) {
  run(60, State::ok);
  const std::size_t before = sent("/status").size();
  for (int i = 0; i < 60; ++i) {
    run(10, i % 2 == 0 ? State::lost : State::ok);
  }
  EXPECT_LE(sent("/status").size(), before + 3) << "only heartbeats: no loss has lasted";
}

TEST_F(ReporterTest, ReportsALossAndItsEndToThePod) {
  run(60, State::lost);
  run(120, State::ok);
  const std::vector<Request> events = sent("/events");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].path, "/api/v1/namespaces/ml/events");
  EXPECT_EQ(Json::parse(events[0].body)["reason"], "DeviceLost");
  EXPECT_EQ(Json::parse(events[1].body)["reason"], "DeviceRestored");
}

TEST_F(ReporterTest, IsUnknownOnlyOnceTheGuardIsAwayForAMinute) {
  run(60, State::ok);
  for (int i = 0; i < 5; ++i, now_ += 10 * kSecond) {
    reporter_.miss_guard("connect: refused", moment());
    send();
  }
  EXPECT_EQ(condition_in(sent("/status").back())["status"], "True");
  for (int i = 0; i < 10; ++i, now_ += 10 * kSecond) {
    reporter_.miss_guard("connect: another text each time " + std::to_string(i), moment());
    send();
  }
  const std::size_t count = sent("/status").size();
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(condition_in(sent("/status").back())["status"], "Unknown");
  EXPECT_EQ(condition_in(sent("/status").back())["reason"], "GuardAbsent");
  run(60, State::ok);
  EXPECT_EQ(condition_in(sent("/status").back())["status"], "True");
}

TEST_F(ReporterTest, DoesNotTrustASnapshotThatIsOld) {
  see(State::ok);
  for (int i = 0; i < 40; ++i, now_ += 10 * kSecond) {
    reporter_.confirm(moment());
    send();
  }
  EXPECT_EQ(condition_in(sent("/status").back())["status"], "Unknown");
  EXPECT_EQ(condition_in(sent("/status").back())["reason"], "GuardBlind");
}

TEST_F(ReporterTest, TakesAnEventThatExistsForItsOwn) {
  set(true, false, false);
  answers_ = {Response{409}};
  run(30, State::lost);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].method, "POST");
  run(20, State::ok);  // restored, lost again
  run(120, State::lost);
  const std::vector<Request> changes = sent("/events/");
  ASSERT_GE(changes.size(), 1U);
  EXPECT_EQ(changes[0].method, "PATCH");
}

TEST_F(ReporterTest, CreatesAnEventAgainThatTheServerHasForgotten) {
  set(true, false, false);
  run(30, State::lost);
  answers_ = {Response{201}, Response{404}, Response{201}};
  run(20, State::ok);
  run(120, State::lost);
  ASSERT_EQ(sent_.size(), 4U);  // lost, restored, lost again: gone, created
  EXPECT_EQ(sent_[2].method, "PATCH");
  EXPECT_EQ(sent_[3].method, "POST");
}

TEST_F(ReporterTest, DropsAnEventThatIsRefused) {
  set(true, false, false);
  answers_ = {Response{403}};
  run(600, State::lost);
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(ReporterTest, TaintsTheNodeWhileItIsFalse) {
  set(false, true, true);
  const std::string clean =
      R"({"metadata": {"resourceVersion": "5"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})";
  answers_ = {Response{200}, Response{200, clean}};
  run(60, State::ok);
  ASSERT_EQ(sent_.size(), 2U);  // condition, and a look at the taints
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

// Its name is that of the instance before, which may have written it.
TEST_F(ReporterTest, WritesAnEventFromBeforeItsStartUnderTheSameName) {
  set(true, false, false);
  report(notice::Reason::device_restored, 100);
  send();
  now_ += 5 * kSecond;
  set(true, false, false);
  answers_ = {Response{409}};
  report(notice::Reason::device_restored, 105);
  now_ += 600 * kSecond;
  send();
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(Json::parse(sent_[0].body)["metadata"], Json::parse(sent_[1].body)["metadata"]);
  EXPECT_EQ(sent_[0].method, sent_[1].method);
}

TEST_F(ReporterTest, ALossFromBeforeItsStartIsNoConditionAndEndsWithoutAnEvent) {
  set(true, true, false);
  report(notice::Reason::device_lost, 100);
  run(60, State::unknown);  // a probe hangs
  EXPECT_EQ(sent("/status").size(), 0U) << "it is not known yet";
  run(60, State::ok);
  ASSERT_EQ(sent("/status").size(), 1U);
  EXPECT_EQ(condition_in(sent("/status")[0])["status"], "True");
  ASSERT_EQ(sent("/events").size(), 1U);
  EXPECT_EQ(Json::parse(sent("/events")[0].body)["reason"], "DeviceLost");
}

TEST_F(ReporterTest, WritesOnlyWhatItIsToldTo) {
  set(false, false, false);
  run(600, State::lost);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(reporter_.next_due(), notice::EventQueue::kNever);
}

}  // namespace
}  // namespace hf::cluster
