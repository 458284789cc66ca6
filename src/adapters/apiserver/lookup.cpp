#include "adapters/apiserver/lookup.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "kernel/process/thread.h"

namespace hf::apiserver {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using kernel::Clock;

constexpr std::chrono::milliseconds kCancelCheck{20};  // between checks whether the lookup was cancelled

// The thread may outlive every object, so its number is counted for the whole process.
std::atomic<bool> is_asking = false;

struct Found {
  Addresses addresses;
  error_code error;
};

Result<void> check(const LookupLimits& limits) {
  if (limits.is_cancelled) {
    return fail(std::errc::operation_canceled, "cancelled");
  }
  return Clock::now() < limits.deadline ? Result<void>() : fail(std::errc::timed_out, "no answer in time");
}

Clock::time_point next_look(const LookupLimits& limits) {
  return std::min(limits.deadline, Clock::now() + kCancelCheck);
}

Result<std::future<Found>> ask(const std::string& host, const std::string& port, Resolve resolve) {
  std::promise<Found> promise;
  std::future<Found> answer = promise.get_future();
  try {
    std::thread([promise = std::move(promise), resolve = std::move(resolve), host, port]() mutable {
      kernel::name_thread("hf-resolve");
      kernel::block_all_signals();
      Found found;
      found.addresses = resolve(host, port, found.error);
      is_asking = false;
      promise.set_value(std::move(found));
    }).detach();
  } catch (const std::system_error& error) {
    is_asking = false;
    return fail_errno(error.code().value(), "start a thread");
  }
  return answer;
}

}  // namespace

Addresses ask_resolver(const std::string& host, const std::string& port, error_code& error) {
  asio::io_context context;
  return tcp::resolver(context).resolve(host, port, error);
}

Result<Addresses> look_up(const std::string& host, const std::string& port, const LookupLimits& limits,
                          Resolve resolve) {
  while (is_asking.exchange(true)) {
    TRY(check(limits));
    std::this_thread::sleep_until(next_look(limits));
  }
  std::future<Found> answer = TRY(ask(host, port, std::move(resolve)));
  while (answer.wait_until(next_look(limits)) != std::future_status::ready) {
    TRY(check(limits));
  }
  Found found = answer.get();
  if (found.error) {
    return fail(std::errc::host_unreachable, found.error.message());
  }
  return std::move(found.addresses);
}

}  // namespace hf::apiserver
