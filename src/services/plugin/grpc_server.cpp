#include "services/plugin/grpc_server.h"

#include <chrono>

#include <fcntl.h>

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

namespace hf::plugin {

void set_nonblocking(const kernel::Fd& socket) {
  (void)::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
}

GrpcServer::GrpcServer(kernel::EventLoop& loop, std::initializer_list<grpc::Service*> services) : loop_(loop) {
  grpc::ServerBuilder builder;
  for (grpc::Service* const service : services) {
    builder.RegisterService(service);
  }
  server_ = builder.BuildAndStart();
}

GrpcServer::~GrpcServer() {
  if (stopper_.joinable()) {
    stopper_.join();
  }
}

void GrpcServer::accept(kernel::Fd client) {
  set_nonblocking(client);
  grpc::AddInsecureChannelFromFd(server_.get(), client.release());
}

// Shutdown waits for calls that the loop finishes, so another thread waits for it.
void GrpcServer::stop(std::function<void()> stopped) {
  stopper_ = std::thread([this, stopped = std::move(stopped)] {
    server_->Shutdown(std::chrono::system_clock::now());
    loop_.post(stopped);
  });
}

}  // namespace hf::plugin
