#include "services/plugin/dra/slice_writer.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "services/plugin/dra/fake_api_test.h"

namespace hf::plugin {
namespace {

using resource::PublishedDevice;

constexpr std::uint64_t kSecond = 1'000'000'000;

class SliceWriterTest : public testing::Test {
 protected:
  void work(std::uint64_t later = 0) {
    now += later;
    writer.work();
    api.answer_all(loop);
  }
  [[nodiscard]] std::string written() const {
    const auto found = api.objects.find(kube::slice_path("node1-gpu.holdfast.dev-0"));
    return found == api.objects.end() ? "" : found->second;
  }
  [[nodiscard]] std::size_t writes() const {
    return std::size_t(
        std::ranges::count_if(api.asked, [](const std::string& one) { return !one.starts_with("GET"); }));
  }

  kernel::EventLoop loop;
  FakeApi api;
  ApiCalls calls{loop, api.api()};
  std::vector<std::string> log;
  std::uint64_t now = 1000 * kSecond;
  double random = 0.5;
  SliceWriter writer{
      [this](apiserver::Request request, ApiDone done) { calls.send(std::move(request), std::move(done)); },
      {kPool, [this](const std::string& line, bool /*is_warning*/) { log.push_back(line); }, [this] { return now; },
       [this] { return random; }}};
  const std::vector<PublishedDevice> devices = {{"gpu-0", {{"uuid", "GPU-0"}}, {}}};

  void SetUp() override { api.objects[kube::node_path("node1")] = R"({"metadata":{"uid":"u-1"}})"; }
};

TEST_F(SliceWriterTest, WritesOnceAndOnlyWhatIsNew) {
  work();
  EXPECT_TRUE(api.asked.empty()) << "it was not told yet what to publish";
  writer.publish(devices);
  work();
  EXPECT_NE(written().find("\"uid\":\"u-1\""), std::string::npos) << written();
  EXPECT_EQ(writes(), 1U);
  writer.publish(devices);
  work(10 * kSecond);
  EXPECT_EQ(writes(), 1U);
  work(301 * kSecond);
  EXPECT_EQ(writes(), 1U) << "it looked, and all was well";
  api.objects.erase(kube::slice_path("node1-gpu.holdfast.dev-0"));
  writer.check_soon();
  work();
  EXPECT_NE(written(), "");
}

TEST_F(SliceWriterTest, WritesNothingForANodeThatIsNotRegistered) {
  writer.publish(devices);
  work();
  api.objects.clear();  // the node was deleted, and its slices with it
  work(400 * kSecond);
  work(100 * kSecond);
  EXPECT_EQ(written(), "");
  EXPECT_LE(writer.next_due(), now + 60 * kSecond);
  api.objects[kube::node_path("node1")] = R"({"metadata":{"uid":"u-2"}})";
  work(60 * kSecond);
  EXPECT_NE(written().find("\"uid\":\"u-2\""), std::string::npos) << written();
}

TEST_F(SliceWriterTest, WithoutLeaveToReadItsNodeItPublishesAllTheSame) {
  api.is_forbidden = true;
  writer.publish(devices);
  work();
  EXPECT_NE(written(), "");
  EXPECT_EQ(written().find("ownerReferences"), std::string::npos);
  api.is_forbidden = false;
  work(301 * kSecond);
  EXPECT_NE(written().find("\"uid\":\"u-1\""), std::string::npos) << written();
  EXPECT_EQ(std::ranges::count_if(log, [](const std::string& line) { return line.starts_with("no-node"); }), 1);
}

TEST_F(SliceWriterTest, ANodeThatWasRegisteredAgainOwnsItsSlices) {
  writer.publish(devices);
  work();
  api.objects[kube::node_path("node1")] = R"({"metadata":{"uid":"u-2"}})";
  writer.check_soon();
  work();
  EXPECT_NE(written().find("\"uid\":\"u-2\""), std::string::npos) << written();
  api.objects.erase(kube::slice_path("node1-gpu.holdfast.dev-0"));  // by the garbage collector
  api.objects[kube::node_path("node1")] = R"({"metadata":{"uid":"u-3"}})";
  work(301 * kSecond);
  EXPECT_NE(written().find("\"uid\":\"u-3\""), std::string::npos) << written();
}

// One check is due at a time, however often it was refused, registered or told of other devices before.
TEST_F(SliceWriterTest, FailuresAndChangesLeaveNoTimersBehind) {
  api.status_of_writes = 422;
  for (int i = 0; i < 10; ++i, now += 60 * kSecond) {
    writer.publish(i % 2 == 0 ? devices : std::vector<PublishedDevice>());
    writer.check_soon();
    work();
  }
  api.status_of_writes = 0;
  work(120 * kSecond);
  EXPECT_EQ(writer.next_due(), now + 300 * kSecond);
}

TEST_F(SliceWriterTest, WhatFailsIsTriedAgainAndSaidOnce) {
  api.status_of_writes = 409;
  writer.publish(devices);
  for (const std::uint64_t later : {0U, 2U, 4U, 8U}) {
    work(later * kSecond);
  }
  EXPECT_GE(writes(), 2U);
  EXPECT_EQ(std::ranges::count_if(log, [](const std::string& line) { return line.starts_with("not-published"); }), 1);
  api.status_of_writes = 0;
  work(100 * kSecond);
  EXPECT_NE(written(), "");
}

TEST_F(SliceWriterTest, OneRequestIsUnderWayAndHasADeadline) {
  writer.publish(devices);
  writer.work();
  EXPECT_EQ(api.waiting(), 1U);
  EXPECT_EQ(api.next().deadline, now + 60 * kSecond);
  EXPECT_EQ(writer.next_due(), kernel::EventLoop::kNever);
  now += 600 * kSecond;
  writer.publish({});
  writer.work();
  EXPECT_EQ(api.waiting(), 1U) << "another one only after its answer";
  api.is_away = true;
  api.answer_all(loop);
  EXPECT_NE(writer.next_due(), kernel::EventLoop::kNever) << "it tries again";
}

TEST_F(SliceWriterTest, HostsDoNotActTogether) {
  writer.publish(devices);
  for (const auto& [part, check] : {std::pair(0.0, 270), std::pair(1.0, 330)}) {
    random = part;
    writer.check_soon();
    work();
    work(100 * kSecond);
    EXPECT_EQ(writer.next_due(), now + std::uint64_t(check) * kSecond) << "checks";
    api.is_away = true;
    work(400 * kSecond);
    EXPECT_EQ(writer.next_due(), now + (part == 0 ? kSecond / 2 : kSecond)) << "attempts";
    api.is_away = false;
    work(100 * kSecond);
  }
}

}  // namespace
}  // namespace hf::plugin
