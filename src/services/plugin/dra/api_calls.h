// ApiCalls: requests to the API server whose answers arrive in the event loop, each within its limit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "adapters/apiserver/client.h"
#include "core/base/result.h"
#include "kernel/net/event_loop.h"

namespace hf::plugin {

// Sends a request and calls the function once, on any thread.
using ApiDone = std::function<void(Result<apiserver::Response>)>;
using Api = std::function<void(apiserver::Request, ApiDone)>;

class ApiCalls {
 public:
  ApiCalls(kernel::EventLoop& loop, Api api);
  ApiCalls(const ApiCalls&) = delete;
  ApiCalls& operator=(const ApiCalls&) = delete;
  ~ApiCalls();  // answers that come later are dropped

  // `done` is called in the loop, with an error where no answer has come at `deadline` (nanoseconds of
  // CLOCK_MONOTONIC).
  void send(apiserver::Request request, std::uint64_t deadline, ApiDone done);
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  struct Gate;
  struct Call {
    std::uint64_t deadline = 0;
    ApiDone done;
  };

  void finish(std::uint64_t number, Result<apiserver::Response> response);

  Api api_;
  std::shared_ptr<Gate> gate_;  // shared with the requests under way
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t last_ = 0;
};

}  // namespace hf::plugin
