// Rpc: the gRPC side of one resource. gRPC calls from its own threads; each call is handled in the event loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/resource/allocation.h"
#include "core/resource/offer.h"
#include "core/resource/preference.h"
#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"

namespace hf::plugin {

class Rpc {
 public:
  struct Handlers {  // called in the loop
    std::function<Result<resource::Allocation>(const std::vector<std::string>& ids)> allocate;
    std::function<Result<std::vector<std::string>>(const resource::Choice& choice)> prefer;
    std::function<void()> stream_opened;
    std::function<void()> stream_ended;
    std::function<void(bool is_registered, const std::string& error)> registered;  // by the plugin watcher
  };

  // `endpoint`: the path of the socket, for the plugin watcher. The loop must outlive this object, and run until `stop`
  // has called its task.
  Rpc(kernel::EventLoop& loop, const std::string& resource, const std::string& endpoint, Handlers handlers);
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;
  ~Rpc();

  void accept(kernel::Fd client);
  void publish(const resource::Offer& offer);  // to every stream, also to those that are opened later
  [[nodiscard]] std::size_t streams() const;
  // Ends all calls; `stopped` is called in the loop when this object may be destroyed.
  void stop(std::function<void()> stopped);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Tells kubelet of a plugin. `done` is called in the loop, unless the loop has ended.
struct RegisterRequest {
  std::string kubelet;   // the path of kubelet's socket
  std::string endpoint;  // the name of the plugin's socket in the same directory
  std::string resource;
};
void register_with_kubelet(kernel::EventLoop& loop, const RegisterRequest& request,
                           std::function<void(Result<void>)> done);

}  // namespace hf::plugin
