#include "adapters/apiserver/lookup.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace hf::apiserver {
namespace {

using boost::system::error_code;
using kernel::Clock;

// A resolver that hangs until it is told to go on.
class Hanging {
 public:
  Resolve resolve() {
    return [this](const std::string& host, const std::string& port, error_code& error) {
      ++questions_;
      go_on_.get_future().wait();
      return ask_resolver(host, port, error);
    };
  }
  void go_on() { go_on_.set_value(); }
  [[nodiscard]] int questions() const { return questions_; }

 private:
  std::promise<void> go_on_;
  std::atomic<int> questions_ = 0;
};

class LookupTest : public testing::Test {
 protected:
  Result<Addresses> look_up(std::chrono::milliseconds limit, const Resolve& resolve = ask_resolver) {
    return apiserver::look_up("127.0.0.1", "443", {is_cancelled_, Clock::now() + limit}, resolve);
  }

  std::atomic<bool> is_cancelled_ = false;
};

TEST_F(LookupTest, FindsAddresses) {
  const Result<Addresses> found = look_up(std::chrono::seconds(60));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->begin()->endpoint().address().to_string(), "127.0.0.1");
  EXPECT_EQ(found->begin()->endpoint().port(), 443);
}

TEST_F(LookupTest, SaysWhyANameHasNone) {
  const Result<Addresses> found =
      look_up(std::chrono::seconds(60), [](const std::string&, const std::string&, error_code& error) {
        error = boost::asio::error::host_not_found;
        return Addresses();
      });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, std::errc::host_unreachable);
}

TEST_F(LookupTest, EndsWhileTheResolverHangsAndAsksNoOtherMeanwhile) {
  Hanging hanging;
  const Result<Addresses> first = look_up(std::chrono::milliseconds(50), hanging.resolve());
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, std::errc::timed_out);
  const Result<Addresses> second = look_up(std::chrono::milliseconds(50), hanging.resolve());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, std::errc::timed_out);
  is_cancelled_ = true;
  const Result<Addresses> third = look_up(std::chrono::hours(1), hanging.resolve());
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, std::errc::operation_canceled);
  is_cancelled_ = false;
  hanging.go_on();
  EXPECT_TRUE(look_up(std::chrono::seconds(60)));
  EXPECT_EQ(hanging.questions(), 1);
}

TEST_F(LookupTest, IsCancelledWhileTheResolverHangs) {
  Hanging hanging;
  std::thread canceller([&] {
    while (hanging.questions() == 0) {
      std::this_thread::yield();
    }
    is_cancelled_ = true;
  });
  const Result<Addresses> found = look_up(std::chrono::hours(1), hanging.resolve());
  canceller.join();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, std::errc::operation_canceled);
  hanging.go_on();
  is_cancelled_ = false;
  EXPECT_TRUE(look_up(std::chrono::seconds(60)));  // its thread has ended
}

}  // namespace
}  // namespace hf::apiserver
