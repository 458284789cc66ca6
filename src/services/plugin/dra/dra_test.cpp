// SliceWriter and Claims against an API server that is a map, without threads.
#include <algorithm>
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
const ClaimName kOther{"training", "other", "4-5-6"};
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
  [[nodiscard]] const apiserver::Request& next() const { return waiting_.front().request; }

  std::map<std::string, std::string> objects;  // bodies, by path
  std::vector<std::string> asked;
  unsigned status_of_writes = 0;  // not 0: each write is answered with it
  unsigned status_of_reads = 0;   // the same
  bool is_away = false;
  bool is_forbidden = false;  // to read the node

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
    if (request.method == "GET" && status_of_reads != 0) {
      return apiserver::Response{status_of_reads, R"({"message":"refused"})"};
    }
    if (request.method == "GET" && request.path.starts_with(list + "?")) {
      std::string items;
      for (const auto& [path, body] : objects) {
        items += path.starts_with(list) ? (items.empty() ? "" : ",") + body : "";
      }
      return apiserver::Response{200, R"({"items":[)" + items + "]}"};
    }
    if (request.method == "GET" && request.path == kube::node_path("node1") && is_forbidden) {
      return apiserver::Response{403, R"({"message":"nodes is forbidden"})"};
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

class ClaimsTest : public testing::Test {
 protected:
  Claims make() {
    return Claims(host, calls,
                  {kPool, "/var/lib/driver/claims.json", [this] { return devices; },
                   [this](const std::string& line, bool /*is_warning*/) { log.push_back(line); }});
  }
  void allocate(const std::string& device, const ClaimName& claim = kClaim, const std::string& more = "") {
    api.objects[kube::claim_path(claim)] = R"({"metadata":{"uid":")" + claim.uid +
                                           R"("},"status":{"allocation":{"devices":{"results":[{"request":"gpu",)" +
                                           R"("driver":"gpu.holdfast.dev","pool":"node1","device":")" + device + "\"" +
                                           more + "}]}}}}";
  }
  // The answers come later.
  void ask(Claims& claims, const std::vector<ClaimName>& names) {
    answers.reset();
    claims.prepare(names, [this](const kube::PrepareAnswers& given) { answers = given; });
  }
  void make_usable(Claims& claims) {
    for (ClusterDevice& device : devices) {
      device.waits_for.reset();
    }
    claims.try_again();
    claims.work(kernel::monotonic_now());
  }
  Result<resource::PreparedClaim> prepare(Claims& claims) {
    ask(claims, {kClaim});
    api.answer_all(loop);
    return answers ? answers->at(kClaim.uid) : fail(std::errc::operation_in_progress, "no answer yet");
  }

  test::FakeHost fake{kFiles};
  kernel::Host host = fake.open();
  kernel::EventLoop loop;
  FakeApi api;
  ApiCalls calls{loop, api.api()};
  std::vector<std::string> log;
  std::vector<ClusterDevice> devices = {{{"gpu-0", {}, {}}, {}, "nvidia.com/gpu=GPU-0", std::nullopt, std::nullopt},
                                        {{"gpu-1", {}, {}}, {}, "nvidia.com/gpu=GPU-1", std::nullopt, std::nullopt}};
  std::optional<kube::PrepareAnswers> answers;
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

TEST_F(ClaimsTest, AClaimThatCannotBeReadKeepsWhatWasPrepared) {
  allocate("gpu-0");
  Claims claims = make();
  ASSERT_TRUE(prepare(claims));
  for (const unsigned status : {401U, 403U, 429U, 500U, 503U}) {
    api.status_of_reads = status;
    EXPECT_TRUE(prepare(claims)) << status;
    ask(claims, {kOther});
    api.answer_all(loop);
    const Result<resource::PreparedClaim> unknown = answers->at(kOther.uid);
    ASSERT_FALSE(unknown) << status;
    EXPECT_NE(unknown.error().message.find(std::to_string(status)), std::string::npos) << unknown.error().message;
  }
  EXPECT_EQ(claims.counts().prepared, 6U);
  EXPECT_EQ(claims.counts().refused, 5U);
  api.status_of_reads = 404;
  EXPECT_FALSE(prepare(claims));
  api.status_of_reads = 0;
  EXPECT_TRUE(prepare(claims));
  allocate("gpu-0", {kClaim.name_space, kClaim.name, "another-uid"});
  EXPECT_FALSE(prepare(claims));
}

TEST_F(ClaimsTest, WaitsForTheCdiSpecButNotForEver) {
  allocate("gpu-0");
  devices[0].waits_for = "its CDI spec is being written";
  Claims claims = make();
  ask(claims, {kClaim});
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

TEST_F(ClaimsTest, TwoClaimsNeverHaveTheSameDevice) {
  allocate("gpu-0");
  allocate("gpu-0", kOther);
  Claims claims = make();
  ask(claims, {kClaim, kOther});
  api.answer_all(loop);
  ASSERT_TRUE(answers);
  EXPECT_TRUE(answers->at(kClaim.uid));
  ASSERT_FALSE(answers->at(kOther.uid)) << "in one call";
  ask(claims, {kOther});
  api.answer_all(loop);
  ASSERT_FALSE(answers->at(kOther.uid));
  EXPECT_NE(answers->at(kOther.uid).error().message.find("training/gpus has it"), std::string::npos);
  allocate("gpu-0", kOther, R"(,"adminAccess":true)");
  ask(claims, {kOther});
  api.answer_all(loop);
  EXPECT_TRUE(answers->at(kOther.uid)) << "an administrator looks at what others use";
  EXPECT_TRUE(prepare(claims)) << "and takes nothing from them";
  claims.unprepare({kClaim});
  EXPECT_TRUE(prepare(claims));
}

TEST_F(ClaimsTest, WhatKubeletUnpreparedIsNotPreparedByAnEarlierCall) {
  allocate("gpu-0");
  allocate("gpu-1", kOther);
  Claims claims = make();
  ask(claims, {kClaim});  // the API server has not answered
  claims.unprepare({kClaim});
  ASSERT_TRUE(answers);
  EXPECT_FALSE(answers->at(kClaim.uid));
  api.answer_all(loop);
  EXPECT_TRUE(claims.prepared().empty());
  devices[1].waits_for = "its CDI spec is being written";
  ask(claims, {kClaim, kOther});  // one could be used, the other one cannot yet
  api.answer_all(loop);
  claims.unprepare({kClaim});
  EXPECT_FALSE(answers);
  make_usable(claims);
  ASSERT_TRUE(answers);
  EXPECT_FALSE(answers->at(kClaim.uid));
  EXPECT_TRUE(answers->at(kOther.uid));
  EXPECT_EQ(claims.prepared().size(), 1U);
}

TEST_F(ClaimsTest, WhatChangesWhileACallWaitsCounts) {
  allocate("gpu-0");
  allocate("gpu-1", kOther);
  devices[1].waits_for = "its CDI spec is being written";
  Claims claims = make();
  ask(claims, {kClaim, kOther});
  api.answer_all(loop);
  EXPECT_FALSE(answers);
  devices[0].problem = "it is in use: a pod that is about to start has it as nvidia.com/gpu";
  make_usable(claims);
  ASSERT_TRUE(answers);
  EXPECT_FALSE(answers->at(kClaim.uid));
  EXPECT_TRUE(answers->at(kOther.uid));
}

TEST_F(ClaimsTest, NothingIsPreparedAfterTheEnd) {
  allocate("gpu-0");
  Claims claims = make();
  ask(claims, {kClaim});
  claims.stop();
  EXPECT_TRUE(answers && answers->empty()) << "kubelet asks again";
  api.answer_all(loop);
  ask(claims, {kClaim});
  EXPECT_TRUE(answers && answers->empty());
  EXPECT_TRUE(make().prepared().empty());
}

TEST_F(ClaimsTest, AnInstanceThatTakesOverKnowsWhatTheOldOnePrepared) {
  allocate("gpu-0");
  allocate("gpu-1", kOther);
  Claims old = make();
  Claims fresh = make();
  ASSERT_TRUE(prepare(old));
  fresh.read();
  ask(fresh, {kOther});
  api.answer_all(loop);
  EXPECT_EQ(make().prepared().size(), 2U);
}

TEST_F(ClaimsTest, EveryClaimHasAnAnswer) {
  allocate("gpu-0");
  Claims claims = make();
  ask(claims, {kClaim, {"training", "absent", "4"}, {"..", "x", "5"}, kClaim});
  api.answer_all(loop);
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 3U);
  EXPECT_TRUE(answers->at("1-2-3"));
  EXPECT_FALSE(answers->at("4"));
  EXPECT_FALSE(answers->at("5"));
  ask(claims, {});
  EXPECT_TRUE(answers && answers->empty());
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
    short_lived.send({"GET", "/"}, [](const Result<apiserver::Response>&) { FAIL(); });
    late(apiserver::Response{200, ""});
  }
  late(apiserver::Response{200, ""});
  loop.run_until(kernel::monotonic_now());
}

}  // namespace
}  // namespace hf::plugin
