#include "services/cluster/api_thread.h"

#include <atomic>
#include <future>
#include <memory>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::cluster {
namespace {

TEST(ApiThread, AnswersEveryRequestOnceThoughTheServerHangs) {
  constexpr std::size_t kMost = 256;  // that wait
  const test::FakeHost fake(
      {{"proc/self/mountinfo", "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"}, {"sys/fs/cgroup/", ""}});
  const kernel::Host host = fake.open();
  std::promise<void> begins;
  std::promise<void> goes_on;
  std::atomic<bool> has_begun = false;
  ApiSettings settings;
  settings.read_access = [&]() -> Result<apiserver::Access> {
    if (!has_begun.exchange(true)) {
      begins.set_value();
      goes_on.get_future().wait();
    }
    return fail(std::errc::no_such_file_or_directory, "no API server");
  };
  settings.log = [](const std::string&, bool) {};
  std::atomic<std::size_t> dropped = 0;
  std::atomic<std::size_t> cancelled = 0;
  const auto done = [&](const Result<apiserver::Response>& answer) {
    ASSERT_FALSE(answer);
    ++(answer.error().code == std::errc::no_buffer_space ? dropped : cancelled);
  };
  auto api = std::make_unique<ApiThread>(host, std::move(settings));
  api->request({"GET", "/"}, done);
  begins.get_future().wait();
  for (std::size_t i = 0; i < kMost + 10; ++i) {
    api->request({"GET", "/"}, done);
  }
  EXPECT_EQ(dropped, 10U);
  goes_on.set_value();
  api.reset();
  EXPECT_EQ(dropped + cancelled, kMost + 11);
}

}  // namespace
}  // namespace hf::cluster
