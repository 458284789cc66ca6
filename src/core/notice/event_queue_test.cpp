#include "core/notice/event_queue.h"

#include <set>

#include <gtest/gtest.h>

namespace hf::notice {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

PodEvent event_for(const std::string& pod, Reason reason = Reason::device_lost, std::int64_t at = 1000) {
  PodEvent event;
  event.pod = {pod, "trainer-" + pod, "ml", "main", true};
  event.reason = reason;
  event.at = at;
  return event;
}

// Writes everything that is due until `end`, a second at a time.
std::vector<EventWrite> write_until(EventQueue& queue, std::uint64_t begin, std::uint64_t end) {
  std::vector<EventWrite> writes;
  for (std::uint64_t now = begin; now <= end; now += kSecond) {
    while (const std::optional<EventWrite> write = queue.next(now)) {
      queue.settle(*write, Outcome::written, now);
      writes.push_back(*write);
    }
  }
  return writes;
}

TEST(TokenBucket, LetsABurstThroughAndThenSoMuchPerTime) {
  TokenBucket bucket({3, 10});
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(bucket.next_due(), 100U);
    bucket.take(100);
  }
  EXPECT_EQ(bucket.next_due(), 110U);
  bucket.take(110);
  EXPECT_EQ(bucket.next_due(), 120U);
  EXPECT_FALSE(bucket.is_full(129));
  EXPECT_TRUE(bucket.is_full(140));
}

TEST(EventQueue, CreatesAnEventAndThenCountsItsRepetitions) {
  EventQueue queue;
  queue.add(event_for("a"), 0, 0);
  const std::optional<EventWrite> first = queue.next(0);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->is_new);
  EXPECT_EQ(first->count, 1U);
  queue.settle(*first, Outcome::written, 0);
  EXPECT_EQ(queue.next_due(), EventQueue::kNever);
  for (int i = 0; i < 50; ++i) {
    queue.add(event_for("a", Reason::device_lost, 2000 + i), kSecond, 0.5);
  }
  EXPECT_FALSE(queue.next(kSecond));
  EXPECT_EQ(queue.next_due(), 60 * kSecond);
  const std::optional<EventWrite> second = queue.next(60 * kSecond);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_new);
  EXPECT_EQ(second->name, first->name);
  EXPECT_EQ(second->count, 51U);
  EXPECT_EQ(second->first_at, 1000);
  EXPECT_EQ(second->last_at, 2049);
}

TEST(EventQueue, MakesAHandfulOfWritesOfAnHourOfAttacks) {
  EventQueue queue;
  std::vector<EventWrite> writes;
  for (std::uint64_t now = 0; now < 3600 * kSecond; now += kSecond / 10) {
    queue.add(event_for("a", Reason::device_restored), now, 0.5);
    const std::vector<EventWrite> more = write_until(queue, now, now);
    writes.insert(writes.end(), more.begin(), more.end());
  }
  EXPECT_GE(writes.size(), 2U);
  EXPECT_LE(writes.size(), 8U);
  EXPECT_EQ(std::ranges::count_if(writes, &EventWrite::is_new), 1);
}

TEST(EventQueue, SpreadsWhatIsNoWarning) {
  EventQueue queue;
  queue.add(event_for("a", Reason::device_restored), 0, 0.5);
  EXPECT_EQ(queue.next_due(), 60 * kSecond);
  queue.add(event_for("b", Reason::device_lost), 0, 0.5);
  EXPECT_EQ(queue.next_due(), 15 * kSecond / 2);
}

TEST(EventQueue, KeepsTheBudgetOfANodeWhateverTheNumberOfPods) {
  EventQueue queue;
  for (int pod = 0; pod < 200; ++pod) {
    queue.add(event_for(std::to_string(pod)), 0, 0);
  }
  EXPECT_EQ(write_until(queue, 0, 0).size(), 12U);
  EXPECT_EQ(write_until(queue, kSecond, 100 * kSecond).size(), 10U);
  EXPECT_EQ(queue.dropped(), 0U);
}

TEST(EventQueue, KeepsTheBudgetOfAPodWhateverItsContainers) {
  EventQueue queue;
  for (int container = 0; container < 50; ++container) {
    PodEvent event = event_for("a");
    event.pod.container = "c" + std::to_string(container);
    queue.add(event, 0, 0);
  }
  EXPECT_EQ(write_until(queue, 0, 0).size(), 6U);
  EXPECT_EQ(write_until(queue, kSecond, 120 * kSecond).size(), 2U);
}

TEST(EventQueue, WritesWarningsFirst) {
  EventQueue queue;
  for (int pod = 0; pod < 20; ++pod) {
    queue.add(event_for("n" + std::to_string(pod), Reason::device_shielded), 0, 0);
  }
  queue.add(event_for("w", Reason::device_at_risk), 0, 0);
  EXPECT_EQ(queue.next(0)->event.reason, Reason::device_at_risk);
}

TEST(EventQueue, DropsTheOldestAndCountsIt) {
  EventLimits limits;
  limits.most_events = 4;
  EventQueue queue(limits);
  for (int pod = 0; pod < 10; ++pod) {
    queue.add(event_for(std::to_string(pod)), std::uint64_t(pod), 0);
  }
  EXPECT_EQ(queue.size(), 4U);
  EXPECT_EQ(queue.dropped(), 6U);
}

TEST(EventQueue, DropsWhatIsWrittenAndWhatIsNoWarningFirst) {
  EventLimits limits;
  limits.most_events = 3;
  EventQueue queue(limits);
  queue.add(event_for("warning"), 0, 1);
  queue.add(event_for("normal", Reason::device_restored), 1, 1);
  queue.add(event_for("written"), 2, 0);
  queue.settle(*queue.next(2), Outcome::written, 2);
  queue.add(event_for("a"), 3, 0);
  EXPECT_EQ(queue.dropped(), 0U) << "the written one";
  queue.add(event_for("b"), 4, 0);
  EXPECT_EQ(queue.dropped(), 1U);
  std::set<std::string> pods;
  for (const EventWrite& write : write_until(queue, 20 * kSecond, 20 * kSecond)) {
    pods.insert(write.event.pod.uid);
  }
  EXPECT_EQ(pods, (std::set<std::string>{"warning", "a", "b"}));
}

TEST(EventQueue, WritesWhatHasWaitedLongestFirst) {
  EventQueue queue;
  for (const char* pod : {"c", "a", "b", "d"}) {
    queue.add(event_for(pod), 0, std::string(pod) == "b" ? 0.1 : 0.5);
  }
  EXPECT_EQ(queue.next(60 * kSecond)->event.pod.uid, "b");
}

TEST(EventQueue, BeginsAnotherEventWhereTheServerHasForgottenIt) {
  EventQueue queue;
  queue.add(event_for("a", Reason::device_lost, 1000), 0, 0);
  const EventWrite first = *queue.next(0);
  queue.settle(first, Outcome::written, 0);
  queue.add(event_for("a", Reason::device_lost, 9000), kSecond, 0);
  queue.settle(*queue.next(60 * kSecond), Outcome::gone, 60 * kSecond);
  const std::optional<EventWrite> again = queue.next(60 * kSecond);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->is_new);
  EXPECT_NE(again->name, first.name);
  EXPECT_EQ(again->count, 1U);
  EXPECT_EQ(again->first_at, 9000);
}

TEST(EventQueue, WritesAgainWhatHadNoOutcome) {
  EventQueue queue;
  queue.add(event_for("a"), 0, 0);
  ASSERT_TRUE(queue.next(0));  // and the request was dropped
  EXPECT_FALSE(queue.next(kSecond));
  const std::optional<EventWrite> again = queue.next(60 * kSecond);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->is_new);
  queue.settle(*again, Outcome::refused, 60 * kSecond);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(EventQueue, NamesEventsAsKubernetesAcceptsThem) {
  EventQueue queue;
  PodEvent event = event_for("a");
  event.pod.name = std::string(229, 'x') + "-" + std::string(20, 'y');
  queue.add(event, 0, 0);
  const EventWrite write = *queue.next(0);
  EXPECT_LE(write.name.size(), 253U);
  EXPECT_TRUE(is_object_name(write.name)) << write.name;
  EXPECT_EQ(write.name.find("-."), std::string::npos);
}

TEST(EventQueue, ForgetsEventsAfterAnHour) {
  EventQueue queue;
  queue.add(event_for("a"), 0, 0);
  queue.settle(*queue.next(0), Outcome::written, 0);
  queue.add(event_for("b"), 4000 * kSecond, 0);
  EXPECT_EQ(queue.size(), 1U);
}

}  // namespace
}  // namespace hf::notice
