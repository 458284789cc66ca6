#include "services/plugin/dra/claim_reader.h"

#include <chrono>
#include <utility>

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
  loop_.post([this, request = std::move(request), done = std::move(done)] {
    done(stops_ ? fail(std::errc::operation_canceled, "holdfast-kube ends") : send(request));
  });
}

// Tokens and certificates are replaced while this process runs: after a failure they are read again.
Result<apiserver::Response> ClaimReader::send(const apiserver::Request& request) {
  const std::shared_ptr<apiserver::Client> client = TRY(current_client());
  Result<apiserver::Response> response = client->send(request, kernel::Clock::now() + kLimit);
  if (!response || response->status == kUnauthorized) {
    const std::scoped_lock lock(mutex_);
    client_.reset();
  }
  return response;
}

Result<std::shared_ptr<apiserver::Client>> ClaimReader::current_client() {
  const std::scoped_lock lock(mutex_);
  if (!client_) {
    client_ = std::make_shared<apiserver::Client>(TRY(read_access_()));
  }
  return client_;
}

}  // namespace hf::plugin
