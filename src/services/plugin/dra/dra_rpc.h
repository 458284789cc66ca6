// DraRpc: the gRPC side of the DRA driver: its registration, claims, and the health of its devices. gRPC calls from its
// own threads; each call is handled in the event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/kube/dra_messages.h"
#include "core/resource/cluster_device.h"
#include "core/resource/resource_claim.h"
#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"

namespace hf::plugin {

class DraRpc {
 public:
  using Prepared = std::function<void(const kube::PrepareAnswers&)>;
  struct Handlers {  // called in the loop
    std::function<void(const std::vector<resource::ClaimName>& names, Prepared done)> prepare;
    std::function<kube::UnprepareAnswers(const std::vector<resource::ClaimName>& names)> unprepare;
    std::function<void(bool is_registered, const std::string& error)> registered;
  };

  // `endpoint`: the path of the socket that kubelet calls after it has found the one of the registration. The loop must
  // outlive this object, and run until `stop` has called its task.
  DraRpc(kernel::EventLoop& loop, const std::string& driver, const std::string& endpoint, Handlers handlers);
  DraRpc(const DraRpc&) = delete;
  DraRpc& operator=(const DraRpc&) = delete;
  ~DraRpc();

  void accept(kernel::Fd client);  // of either socket
  // Kubelet has registered the driver: what an earlier kubelet read says nothing any more.
  void note_registration();
  // Kubelet read the health of the devices, and does not any more: it has ended. (Not every kubelet reads it.)
  [[nodiscard]] bool is_abandoned() const;
  // To every stream, also to those that are opened later.
  void publish(const std::vector<resource::ClusterDevice>& devices, const std::string& pool);
  // Ends all calls; `stopped` is called in the loop when this object may be destroyed.
  void stop(std::function<void()> stopped);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hf::plugin
