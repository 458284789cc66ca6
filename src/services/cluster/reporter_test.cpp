#include "services/cluster/reporter_test.h"

namespace hf::cluster {
namespace {

using apiserver::Request;
using apiserver::Response;
using container::State;
using Json = nlohmann::json;

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

TEST_F(ReporterTest, AsksLessAndLessOftenForANodeThatTheServerDoesNotKnow) {
  set(false, true, false);
  present_ = {404};
  run(3600, State::ok);
  EXPECT_LE(reads_, 16);
  EXPECT_GE(reads_, 12);
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

TEST_F(ReporterTest, AsksAgainSoonForANodeThatTheServerKnewMeanwhile) {
  set(false, true, false);
  answers_ = {Response{404}, Response{200}};
  run(300, State::ok);
  EXPECT_EQ(sent_.size(), 2U);
  answers_ = {Response{404}};  // at the heartbeat
  run(60, State::ok);
  EXPECT_EQ(sent_.size(), 4U) << "30 s later, not 60";
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
