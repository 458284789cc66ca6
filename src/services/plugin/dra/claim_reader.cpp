#include "services/plugin/dra/claim_reader.h"

#include <chrono>
#include <utility>

#include "kernel/files/clock.h"
#include "kernel/process/thread.h"

namespace hf::plugin {
namespace {

constexpr std::chrono::seconds kLimit{10};
constexpr unsigned kUnauthorized = 401;

}  // namespace

ClaimReader::ClaimReader(ReadAccess read_access)
    : read_access_(std::move(read_access)), thread_([this] {
        kernel::name_thread("hf-claims");
        while (!stops_) {
          loop_.run_until(kernel::EventLoop::kNever);
        }
      }) {}

ClaimReader::~ClaimReader() {
  stops_ = true;
  {
    const std::scoped_lock lock(mutex_);
    if (client_) {
      client_->cancel();
    }
  }
  loop_.post([] {});  // wakes it
  thread_.join();
}

void ClaimReader::request(apiserver::Request request, ApiDone done) {
  if (waiting_.fetch_add(1) >= kMostWaiting) {
    --waiting_;
    return done(
        fail(std::errc::no_buffer_space, std::to_string(kMostWaiting) + " claims wait for the API server already"));
  }
  loop_.post([this, request = std::move(request), done = std::move(done)] {
    --waiting_;
    done(stops_ ? fail(std::errc::operation_canceled, "holdfast-kube ends") : send(request));
  });
}

// Tokens and certificates are replaced while this process runs: after a failure they are read again.
Result<apiserver::Response> ClaimReader::send(const apiserver::Request& request) {
  if (kernel::monotonic_now() >= request.deadline) {
    return fail(std::errc::timed_out, "the API server was too slow with the claims before it");
  }
  const std::shared_ptr<apiserver::Client> client = TRY(open_client());
  Result<apiserver::Response> response = client->send(request, kernel::Clock::now() + kLimit);
  if (!response || response->status == kUnauthorized) {
    const std::scoped_lock lock(mutex_);
    client_.reset();
  }
  return response;
}

Result<std::shared_ptr<apiserver::Client>> ClaimReader::open_client() {
  if (client_) {  // only this thread replaces it
    return client_;
  }
  const auto client = std::make_shared<apiserver::Client>(TRY(read_access_()));
  const std::scoped_lock lock(mutex_);
  client_ = client;
  if (stops_) {
    client->cancel();  // the destructor has seen none
  }
  return client;
}

}  // namespace hf::plugin
