#include "services/plugin/dra/claims.h"

#include <optional>

#include <gtest/gtest.h>

#include "kernel/files/file.h"
#include "services/plugin/dra/fake_api_test.h"
#include "support/fake_host.h"

namespace hf::plugin {
namespace {

using resource::ClaimName;
using resource::ClusterDevice;

const ClaimName kClaim{"training", "gpus", "1-2-3"};
const ClaimName kOther{"training", "other", "4-5-6"};
const test::Files kFiles = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                            {"proc/stat", "btime 1000\n"},
                            {"var/lib/driver/keep", ""}};

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
