#include "services/cluster/sender.h"

#include <gtest/gtest.h>

namespace hf::cluster {
namespace {

using apiserver::Request;
using apiserver::Response;

constexpr std::uint64_t kSecond = 1'000'000'000;

// An API server that answers as it is told, and a clock that jumps to the next request.
class SenderTest : public testing::Test {
 protected:
  void add(const std::string& path = "/api/v1/namespaces/ml/events", std::uint64_t deadline = apiserver::kNoDeadline) {
    Request request{"POST", path};
    request.deadline = deadline;
    sender_.add(std::move(request), [this](Result<Response> answer) { answers_.push_back(std::move(answer)); });
  }

  // Sends what is due and returns how long it had to wait for it.
  std::uint64_t answer(Result<Response> response, double random = 1) {
    const std::uint64_t began = now_;
    now_ = std::max(now_, sender_.next_due());
    EXPECT_NE(sender_.next(now_), nullptr);
    sender_.settle(std::move(response), now_, random);
    return now_ - began;
  }

  static Result<Response> away() { return fail(std::errc::connection_refused, "API server: connect: refused"); }
  static Result<Response> unanswered() { return fail(Reason::unanswered, "API server: read its answer: too late"); }
  static Response status(unsigned number) { return {number, R"({"message": "so it is"})"}; }

  std::vector<std::string> lines_;
  Sender sender_{[this](const std::string& line, bool) { lines_.push_back(line); }};
  std::vector<Result<Response>> answers_;
  std::uint64_t now_ = 100 * kSecond;
};

TEST_F(SenderTest, SendsOneAfterTheOther) {
  EXPECT_EQ(sender_.next(now_), nullptr);
  EXPECT_EQ(sender_.next_due(), Sender::kNever);
  add();
  add();
  EXPECT_EQ(answer(status(201)), 0U);
  EXPECT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answer(status(200)), 0U);
  EXPECT_EQ(answers_.size(), 2U);
  EXPECT_EQ(sender_.next_due(), Sender::kNever);
  EXPECT_EQ(lines_, std::vector<std::string>{"api-answers"});
}

TEST_F(SenderTest, WaitsLongerAndLongerForAServerThatIsAway) {
  add();
  std::vector<std::uint64_t> pauses;
  for (int i = 0; i < 8; ++i) {
    pauses.push_back(answer(away()) / kSecond);
  }
  EXPECT_EQ(pauses, (std::vector<std::uint64_t>{0, 2, 4, 8, 16, 32, 60, 60}));
  EXPECT_TRUE(answers_.empty());
  EXPECT_TRUE(sender_.is_away());
  (void)answer(status(201));
  EXPECT_EQ(answers_.size(), 1U);
  add();
  (void)answer(away());
  EXPECT_EQ(answer(status(201)), 2 * kSecond);  // from the beginning again
}

TEST_F(SenderTest, SpreadsItsAttempts) {
  add();
  (void)answer(away(), 0.25);
  EXPECT_EQ(answer(away(), 0.5), kSecond / 2);
  EXPECT_EQ(answer(away(), 0), 2 * kSecond);
  EXPECT_EQ(answer(away(), 0), kSecond / 10);  // but never at once
}

TEST_F(SenderTest, SaysOneLinePerChangeOfState) {
  add();
  for (int i = 0; i < 7; ++i) {  // one more 503 would give the request up
    (void)answer(i % 2 == 0 ? away() : Result<Response>(status(503)));
  }
  EXPECT_EQ(lines_, (std::vector<std::string>{"api-away error='API server: connect: refused'",
                                              "api-fails request='POST events' error='503 so it is'"}));
  lines_.clear();
  (void)answer(status(201));
  EXPECT_EQ(lines_, (std::vector<std::string>{"api-answers", "api-answers request='POST events'"}));
}

TEST_F(SenderTest, SaysThatRequestsOfAKindFail) {
  for (int i = 0; i < 5; ++i) {
    add();
    (void)answer(status(500));
    add("/api/v1/nodes/gpu-7/status");
    (void)answer(status(200));
    (void)answer(status(500));
    (void)answer(status(429));
    (void)answer(unanswered());
    EXPECT_FALSE(sender_.is_away());
  }
  EXPECT_EQ(lines_, (std::vector<std::string>{"api-answers", "api-fails request='POST events' error='500 so it is'"}));
  add();
  (void)answer(status(409));
  EXPECT_EQ(lines_.back(), "api-answers request='POST events'");
}

TEST_F(SenderTest, ObeysRetryAfter) {
  add();
  Response busy = status(429);
  busy.retry_after = std::chrono::seconds(7);
  (void)answer(busy, 0.5);
  EXPECT_EQ(answer(busy, 0), 7 * kSecond + 7 * kSecond / 2);
  EXPECT_EQ(answer(status(201)), 7 * kSecond);
  EXPECT_EQ(lines_, std::vector<std::string>{"api-answers"}) << "a busy server is no news";
  add();
  busy.retry_after = std::chrono::seconds(100'000);
  (void)answer(busy, 0);
  EXPECT_EQ(answer(status(201)), 300 * kSecond) << "no server sends us away for a day";
}

TEST_F(SenderTest, GivesUpARequestThatTheServerDoesNotTake) {
  for (const unsigned number : {429U, 500U}) {
    answers_.clear();
    add("/api/v1/namespaces/bad/events");
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(answers_.empty());
      (void)answer(away());  // is no attempt
      (void)answer(status(number));
    }
    ASSERT_EQ(answers_.size(), 1U);
    EXPECT_EQ(answers_[0]->status, number);
    add();
    EXPECT_EQ(sender_.next(now_), nullptr) << "after a pause";
    (void)answer(status(201));
    EXPECT_EQ(answers_.size(), 2U);
  }
}

// The API server limits events of a namespace.
TEST_F(SenderTest, OneRequestThatIsRefusedDoesNotHoldTheOthers) {
  add("/api/v1/namespaces/bad/events");
  Response busy = status(429);
  busy.retry_after = std::chrono::seconds(30);
  (void)answer(busy);
  add("/api/v1/nodes/gpu-7/status");
  add();
  EXPECT_EQ(answer(status(200)), kSecond);
  EXPECT_EQ(answer(status(201)), 0U);
  EXPECT_EQ(answers_.size(), 2U);
  EXPECT_EQ(sender_.next(now_), nullptr);
  EXPECT_EQ(answer(status(201)), 59 * kSecond);
  EXPECT_EQ(answers_.size(), 3U);
  EXPECT_EQ(lines_, std::vector<std::string>{"api-answers"});
}

// An admission webhook on events that does not answer.
TEST_F(SenderTest, OneRequestThatIsNotAnsweredDoesNotHoldTheOthers) {
  add();
  (void)answer(unanswered(), 0.5);
  add("/api/v1/nodes/gpu-7/status");
  EXPECT_EQ(answer(status(200)), kSecond);
  EXPECT_EQ(answers_.size(), 1U);
  EXPECT_EQ(lines_, std::vector<std::string>{"api-answers"});
  (void)answer(unanswered());
  EXPECT_FALSE(sender_.is_away());
  EXPECT_EQ(lines_.back(), "api-fails request='POST events' error='API server: read its answer: too late'");
}

TEST_F(SenderTest, WhatHasFailedGoesBehindTheOthersWhenItsPauseIsOver) {
  add();
  (void)answer(unanswered());
  add("/api/v1/nodes/gpu-7/status");
  now_ += 10 * kSecond;
  ASSERT_NE(sender_.next(now_), nullptr);
  EXPECT_EQ(sender_.next(now_)->path, "/api/v1/nodes/gpu-7/status");
}

TEST_F(SenderTest, GivesUpARequestThatIsNotAnswered) {
  add();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(answers_.empty());
    (void)answer(away());  // is no attempt
    (void)answer(i % 2 == 0 ? unanswered() : fail(Reason::unanswered, "API server: read its answer: end"));
  }
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].error().reason, Reason::unanswered);
  EXPECT_EQ(sender_.next_due(), Sender::kNever);
}

TEST_F(SenderTest, AllWaitForAServerThatIsAway) {
  add();
  add();
  (void)answer(away());
  EXPECT_EQ(sender_.paused_until(), now_ + 2 * kSecond);
  EXPECT_EQ(sender_.next(now_ + kSecond), nullptr);
  EXPECT_EQ(answer(status(201)), 2 * kSecond);
  EXPECT_EQ(answer(status(201)), 0U);
}

TEST_F(SenderTest, DropsWhatNoCallerWaitsForAnyMore) {
  add("/api/v1/nodes/gpu-7", now_ + 3 * kSecond);
  add();
  (void)answer(away());
  (void)answer(away());  // all wait for 4 s
  EXPECT_EQ(sender_.next_due(), now_ + kSecond);
  now_ += kSecond;
  EXPECT_EQ(sender_.next(now_), nullptr);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].error().code, std::errc::timed_out);
  EXPECT_EQ(answer(status(201)), 3 * kSecond);
  add("/api/v1/nodes/gpu-7", now_);  // it comes too late
  EXPECT_EQ(sender_.next(now_), nullptr);
  EXPECT_EQ(answers_.size(), 3U);
}

TEST_F(SenderTest, ARequestThatHadNoTimeSaysNothingAboutTheServer) {
  add("/api/v1/nodes/gpu-7", now_ + kSecond);
  ASSERT_NE(sender_.next(now_), nullptr);
  sender_.settle(away(), now_ + kSecond, 1);
  EXPECT_EQ(answers_.size(), 1U);
  EXPECT_EQ(sender_.paused_until(), 0U);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(SenderTest, TriesAgainAfter401) {
  add();
  (void)answer(status(401));
  EXPECT_LE(answer(status(401)), 2 * kSecond);
  (void)answer(status(201));
  EXPECT_EQ(answers_.size(), 1U);
  EXPECT_EQ(lines_, (std::vector<std::string>{"api-refuses error='401 so it is'", "api-answers"}));
}

TEST_F(SenderTest, LeavesOtherAnswersToTheCaller) {
  for (const unsigned number : {400U, 404U, 409U, 410U, 422U}) {
    add();
    (void)answer(status(number));
    EXPECT_EQ(answers_.back()->status, number);
  }
  EXPECT_EQ(lines_, (std::vector<std::string>{"api-answers", "api-rejects request='POST events' error='400 so it is'",
                                              "api-rejects request='POST events' error='422 so it is'"}));
}

TEST_F(SenderTest, SaysOnceWhatIsRejectedAndAgainWhenThatChanges) {
  const std::string path = "/api/v1/nodes/gpu-7/status";
  for (const unsigned number : {404U, 404U, 413U, 413U, 200U, 413U, 403U}) {
    add(path);
    (void)answer(status(number));
  }
  EXPECT_EQ(lines_,
            (std::vector<std::string>{"api-answers", "api-rejects request='POST nodes/status' error='404 so it is'",
                                      "api-rejects request='POST nodes/status' error='413 so it is'",
                                      "api-rejects request='POST nodes/status' error='413 so it is'",
                                      "api-forbidden request='POST nodes/status' error='so it is'"}));
}

TEST_F(SenderTest, WhatMayBeGoneIsNoNews) {
  for (const char* path :
       {"/api/v1/namespaces/ml/events/x", "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/x"}) {
    add(path);
    (void)answer(status(404));
  }
  EXPECT_EQ(lines_, std::vector<std::string>{"api-answers"});
}

TEST_F(SenderTest, SaysOnceWhatIsForbidden) {
  for (int i = 0; i < 5; ++i) {
    add("/api/v1/namespaces/n" + std::to_string(i) + "/events");
    (void)answer(status(403));
    add("/api/v1/nodes/gpu-7/status");
    (void)answer(status(200));
  }
  EXPECT_EQ(lines_, (std::vector<std::string>{"api-answers", "api-forbidden request='POST events' error='so it is'"}));
}

TEST_F(SenderTest, DropsTheOldestOfTooMany) {
  for (std::size_t i = 0; i < Sender::kMostWaiting + 10; ++i) {
    add();
  }
  EXPECT_EQ(sender_.dropped(), 10U);
  ASSERT_EQ(answers_.size(), 10U);
  EXPECT_EQ(answers_[0].error().code, std::errc::no_buffer_space);
  sender_.drop_all();
  EXPECT_EQ(answers_.size(), Sender::kMostWaiting + 10);
  EXPECT_EQ(sender_.next_due(), Sender::kNever);
}

TEST(ResourceOf, IsTheSameForAllObjects) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"/api/v1/namespaces/ml/events", "events"},
      {"/api/v1/namespaces/ml/events/x?y=z", "events"},
      {"/api/v1/nodes/gpu-7", "nodes"},
      {"/api/v1/nodes/gpu-7/status", "nodes/status"},
      {"/apis/resource.k8s.io/v1/resourceslices", "resourceslices"},
      {"/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/x/status", "resourceclaims/status"},
      {"/", "/"},
      {"", ""},
  };
  for (const auto& [path, resource] : table) {
    EXPECT_EQ(resource_of(path), resource) << path;
  }
}

}  // namespace
}  // namespace hf::cluster
