// SliceWriter and Claims against an API server that is a map, without threads.
#include <deque>
#include <map>

#include <gtest/gtest.h>

#include "adapters/kube/claim_json.h"
#include "adapters/kube/slice_json.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "services/plugin/dra/claims.h"
#include "services/plugin/dra/slice_writer.h"
#include "support/fake_host.h"

namespace hf::plugin {
namespace {

using resource::ClaimName;
using resource::ClusterDevice;
using resource::Pool;
using resource::PublishedDevice;

constexpr std::uint64_t kSecond = 1'000'000'000;
const Pool kPool{"gpu.holdfast.dev", "node1", ""};
const ClaimName kClaim{"training", "gpus", "1-2-3"};
const test::Files kFiles = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                            {"proc/stat", "btime 1000\n"},
                            {"var/lib/driver/keep", ""}};

// Answers when it is told to, by the paths it knows.
class FakeApi {
 public:
  Api api() {
    return
        [this](apiserver::Request request, ApiDone done) { waiting_.push_back({std::move(request), std::move(done)}); };
  }

  // All requests that wait, and those that their answers lead to.
  void answer_all(kernel::EventLoop& loop) {
    while (!waiting_.empty()) {
      const Waiting one = std::move(waiting_.front());
      waiting_.pop_front();
      asked.push_back(one.request.method + " " + one.request.path.substr(0, one.request.path.find('?')));
      one.done(answer(one.request));
      loop.run_until(kernel::monotonic_now());
    }
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

  std::map<std::string, std::string> objects;  // bodies, by path
  std::vector<std::string> asked;
  unsigned status_of_writes = 0;  // not 0: each write is answered with it
  bool is_away = false;

 private:
  struct Waiting {
    apiserver::Request request;
    ApiDone done;
  };

  Result<apiserver::Response> answer(const apiserver::Request& request) {
    const std::string list = kube::slice_path("");
    if (is_away) {
      return fail(std::errc::connection_refused, "connect: Connection refused");
    }
    if (request.method == "GET" && request.path.starts_with(list + "?")) {
      std::string items;
      for (const auto& [path, body] : objects) {
        items += path.starts_with(list) ? (items.empty() ? "" : ",") + body : "";
      }
      return apiserver::Response{200, R"({"items":[)" + items + "]}"};
    }
    if (request.method == "GET") {
      return objects.contains(request.path) ? apiserver::Response{200, objects[request.path]}
                                            : apiserver::Response{404, R"({"message":"not found"})"};
    }
    if (status_of_writes != 0) {
      return apiserver::Response{status_of_writes, R"({"message":"refused"})"};
    }
    const std::string name = "node1-gpu.holdfast.dev-0";
    if (request.method == "DELETE") {
      objects.erase(request.path);
    } else {
      objects[kube::slice_path(name)] = request.body;
    }
    return apiserver::Response{200, "{}"};
  }

  std::deque<Waiting> waiting_;
};

class SliceWriterTest : public testing::Test {
 protected:
  void work(std::uint64_t later = 0) {
    writer.work(kernel::monotonic_now() + later);
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
  SliceWriter writer{calls, kPool, [this](const std::string& line, bool /*is_warning*/) { log.push_back(line); }};
  const std::vector<PublishedDevice> devices = {{"gpu-0", {{"uuid", "GPU-0"}}, {}}};
};

TEST_F(SliceWriterTest, WritesOnceAndOnlyWhatIsNew) {
  api.objects[kube::node_path("node1")] = R"({"metadata":{"uid":"u-1"}})";
  work();
  EXPECT_TRUE(api.asked.empty()) << "it was not told yet what to publish";
  writer.publish(devices, kernel::monotonic_now());
  work();
  EXPECT_NE(written().find("\"uid\":\"u-1\""), std::string::npos) << written();
  EXPECT_EQ(writes(), 1U);
  writer.publish(devices, kernel::monotonic_now());
  work(10 * kSecond);
  EXPECT_EQ(writes(), 1U);
  work(301 * kSecond);
  EXPECT_EQ(writes(), 1U) << "it looked, and all was well";
  api.objects.erase(kube::slice_path("node1-gpu.holdfast.dev-0"));
  writer.check_soon(kernel::monotonic_now());
  work();
  EXPECT_NE(written(), "");
}

TEST_F(SliceWriterTest, WithoutLeaveToReadItsNodeItPublishesAllTheSame) {
  writer.publish(devices, kernel::monotonic_now());
  work();
  EXPECT_NE(written(), "");
  EXPECT_EQ(written().find("ownerReferences"), std::string::npos);
}

TEST_F(SliceWriterTest, WhatFailsIsTriedAgainAndSaidOnce) {
  api.status_of_writes = 409;
  writer.publish(devices, kernel::monotonic_now());
  for (const std::uint64_t later : {0U, 2U, 4U, 8U}) {
    work(later * kSecond);
  }
  EXPECT_GE(writes(), 2U);
  EXPECT_EQ(std::ranges::count_if(log, [](const std::string& line) { return line.starts_with("not-published"); }), 1);
  api.status_of_writes = 0;
  work(100 * kSecond);
  EXPECT_NE(written(), "");
}

TEST_F(SliceWriterTest, AServerThatNeverAnswersIsGivenUp) {
  writer.publish(devices, kernel::monotonic_now());
  writer.work(kernel::monotonic_now());
  EXPECT_EQ(api.waiting(), 1U);
  EXPECT_EQ(writer.next_due(), kernel::EventLoop::kNever);
  calls.work(kernel::monotonic_now() + 61 * kSecond);
  EXPECT_NE(writer.next_due(), kernel::EventLoop::kNever) << "it tries again";
  api.answer_all(loop);  // too late: nothing happens
  EXPECT_EQ(writes(), 0U);
}

class ClaimsTest : public testing::Test {
 protected:
  Claims make() {
    return Claims(host, calls,
                  {kPool, "/var/lib/driver/claims.json", [this] { return devices; },
                   [this](const std::string& line, bool /*is_warning*/) { log.push_back(line); }});
  }
  void allocate(const std::string& device) {
    api.objects[kube::claim_path(kClaim)] =
        R"({"metadata":{"uid":"1-2-3"},"status":{"allocation":{"devices":{"results":[{"request":"gpu",)"
        R"("driver":"gpu.holdfast.dev","pool":"node1","device":")" +
        device + R"("}]}}}})";
  }
  Result<resource::PreparedClaim> prepare(Claims& claims) {
    std::optional<kube::PrepareAnswers> answers;
    claims.prepare({kClaim}, [&answers](const kube::PrepareAnswers& given) { answers = given; });
    api.answer_all(loop);
    return answers ? answers->at(kClaim.uid) : fail(std::errc::operation_in_progress, "no answer yet");
  }

  test::FakeHost fake{kFiles};
  kernel::Host host = fake.open();
  kernel::EventLoop loop;
  FakeApi api;
  ApiCalls calls{loop, api.api()};
  std::vector<std::string> log;
  std::vector<ClusterDevice> devices = {{{"gpu-0", {}, {}}, {}, "nvidia.com/gpu=GPU-0", std::nullopt, std::nullopt}};
};

TEST_F(ClaimsTest, AnotherProcessRemembersWhatWasPrepared) {
  allocate("gpu-0");
  Claims first = make();
  ASSERT_TRUE(prepare(first));
  Claims second = make();
  EXPECT_EQ(second.prepared().size(), 1U);
  api.is_away = true;
  EXPECT_TRUE(prepare(second)) << "kubelet asks again after its own restart";
  devices[0].problem = "/dev/nvidia-uvm is missing";
  EXPECT_FALSE(prepare(second)) << "not with half a set";
  EXPECT_TRUE(second.unprepare({kClaim}).at(kClaim.uid));
  EXPECT_TRUE(make().prepared().empty());
}

TEST_F(ClaimsTest, WaitsForTheCdiSpecButNotForEver) {
  allocate("gpu-0");
  devices[0].waits_for = "its CDI spec is being written";
  Claims claims = make();
  std::optional<kube::PrepareAnswers> answers;
  const auto keep = [&answers](const kube::PrepareAnswers& given) { answers = given; };
  claims.prepare({kClaim}, keep);
  api.answer_all(loop);
  EXPECT_FALSE(answers);
  claims.work(kernel::monotonic_now());
  EXPECT_FALSE(answers);
  devices[0].waits_for.reset();
  claims.try_again();
  EXPECT_LE(claims.next_due(), kernel::monotonic_now());
  claims.work(kernel::monotonic_now());
  ASSERT_TRUE(answers);
  EXPECT_TRUE(answers->at(kClaim.uid));
}

TEST_F(ClaimsTest, EveryClaimHasAnAnswer) {
  allocate("gpu-0");
  Claims claims = make();
  std::optional<kube::PrepareAnswers> answers;
  claims.prepare({kClaim, {"training", "absent", "4"}, {"..", "x", "5"}, kClaim},
                 [&answers](const kube::PrepareAnswers& given) { answers = given; });
  api.answer_all(loop);
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 3U);
  EXPECT_TRUE(answers->at("1-2-3"));
  EXPECT_FALSE(answers->at("4"));
  EXPECT_FALSE(answers->at("5"));
  bool is_answered = false;
  claims.prepare({}, [&is_answered](const kube::PrepareAnswers& given) { is_answered = given.empty(); });
  EXPECT_TRUE(is_answered);
}

TEST_F(ClaimsTest, WhatCannotBeWrittenDownIsNotPrepared) {
  allocate("gpu-0");
  Claims claims(host, calls,
                {kPool, "/var/lib/none/claims.json", [this] { return devices; },
                 [this](const std::string& line, bool /*is_warning*/) { log.push_back(line); }});
  EXPECT_FALSE(prepare(claims));
  EXPECT_TRUE(claims.prepared().empty());
}

TEST_F(ClaimsTest, AnAnswerAfterItsOwnersEndIsDropped) {
  ApiDone late;
  {
    ApiCalls short_lived(loop,
                         [&late](const apiserver::Request& /*request*/, ApiDone done) { late = std::move(done); });
    short_lived.send({"GET", "/"}, kernel::EventLoop::kNever, [](const Result<apiserver::Response>&) { FAIL(); });
    late(apiserver::Response{200, ""});
  }
  late(apiserver::Response{200, ""});
  loop.run_until(kernel::monotonic_now());
}

}  // namespace
}  // namespace hf::plugin
