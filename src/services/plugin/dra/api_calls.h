// ApiCalls: requests to the API server whose answers arrive in the event loop.
#pragma once

#include <functional>
#include <memory>

#include "adapters/apiserver/client.h"
#include "core/base/result.h"
#include "kernel/net/event_loop.h"

namespace hf::plugin {

// Sends a request and calls the function once, on any thread: with an error where the deadline of the request is over.
using ApiDone = std::function<void(Result<apiserver::Response>)>;
using Api = std::function<void(apiserver::Request, ApiDone)>;

class ApiCalls {
 public:
  ApiCalls(kernel::EventLoop& loop, Api api);
  ApiCalls(const ApiCalls&) = delete;
  ApiCalls& operator=(const ApiCalls&) = delete;
  ~ApiCalls();  // answers that come later are dropped

  void send(apiserver::Request request, ApiDone done);  // `done` is called in the loop

 private:
  struct Gate;

  Api api_;
  std::shared_ptr<Gate> gate_;  // shared with the requests under way
};

}  // namespace hf::plugin
