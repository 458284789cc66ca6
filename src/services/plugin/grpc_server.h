// GrpcServer: a server of gRPC services for clients that the event loop has accepted.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <thread>

#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace hf::plugin {

void set_nonblocking(const kernel::Fd& socket);  // as gRPC wants its sockets

class GrpcServer {
 public:
  // The services and the loop must outlive this object.
  GrpcServer(kernel::EventLoop& loop, std::initializer_list<grpc::Service*> services);
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  ~GrpcServer();

  void accept(kernel::Fd client);
  // Ends all calls; `stopped` is called in the loop when this object may be destroyed.
  void stop(std::function<void()> stopped);

 private:
  kernel::EventLoop& loop_;
  std::unique_ptr<grpc::Server> server_;
  std::thread stopper_;
};

}  // namespace hf::plugin
