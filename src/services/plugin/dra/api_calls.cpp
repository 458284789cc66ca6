#include "services/plugin/dra/api_calls.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace hf::plugin {

// The thread that answers must not post to a loop that is gone.
struct ApiCalls::Gate {
  std::mutex mutex;
  kernel::EventLoop* loop = nullptr;
};

ApiCalls::ApiCalls(kernel::EventLoop& loop, Api api) : api_(std::move(api)), gate_(std::make_shared<Gate>()) {
  gate_->loop = &loop;
}

ApiCalls::~ApiCalls() {
  const std::scoped_lock lock(gate_->mutex);
  gate_->loop = nullptr;
}

void ApiCalls::send(apiserver::Request request, std::uint64_t deadline, ApiDone done) {
  const std::uint64_t number = ++last_;
  calls_.emplace(number, Call{deadline, std::move(done)});
  api_(std::move(request), [this, number, gate = gate_](Result<apiserver::Response> response) {
    const std::scoped_lock lock(gate->mutex);
    if (gate->loop != nullptr) {
      // The gate is asked again in the loop, where this object may have been destroyed meanwhile.
      gate->loop->post([this, number, gate, response = std::move(response)]() mutable {
        if (gate->loop != nullptr) {
          finish(number, std::move(response));
        }
      });
    }
  });
}

void ApiCalls::finish(std::uint64_t number, Result<apiserver::Response> response) {
  const auto found = calls_.find(number);
  if (found == calls_.end()) {
    return;  // it came too late
  }
  const ApiDone done = std::move(found->second.done);
  calls_.erase(found);
  done(std::move(response));
}

void ApiCalls::work(std::uint64_t now) {
  std::vector<std::uint64_t> late;
  for (const auto& [number, call] : calls_) {
    if (call.deadline <= now) {
      late.push_back(number);
    }
  }
  for (const std::uint64_t number : late) {
    finish(number, fail(std::errc::timed_out, "the API server does not answer"));
  }
}

std::uint64_t ApiCalls::next_due() const {
  std::uint64_t due = kernel::EventLoop::kNever;
  for (const auto& [number, call] : calls_) {
    due = std::min(due, call.deadline);
  }
  return due;
}

}  // namespace hf::plugin
