#include "services/plugin/dra/api_calls.h"

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

void ApiCalls::send(apiserver::Request request, ApiDone done) {
  api_(std::move(request), [gate = gate_, done = std::move(done)](Result<apiserver::Response> response) {
    const std::scoped_lock lock(gate->mutex);
    if (gate->loop != nullptr) {
      // The gate is asked again in the loop, where this object may have been destroyed meanwhile.
      gate->loop->post([gate, done, response = std::move(response)]() mutable {
        if (gate->loop != nullptr) {
          done(std::move(response));
        }
      });
    }
  });
}

}  // namespace hf::plugin
