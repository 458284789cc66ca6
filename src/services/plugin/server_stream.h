// ServerStream: one open stream of messages to a client of a gRPC server. Everything happens in the loop, but for the
// calls of gRPC, which only post.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "kernel/net/event_loop.h"

namespace hf::plugin {

template <class Message>
class ServerStream final : public grpc::ServerWriteReactor<Message> {
 public:
  struct Callbacks {
    std::function<void(ServerStream&)> opened;
    std::function<void(ServerStream&)> ended;  // it is destroyed afterwards
  };

  ServerStream(kernel::EventLoop& loop, Callbacks callbacks) : loop_(loop), callbacks_(std::move(callbacks)) {
    loop_.post([this] { callbacks_.opened(*this); });
  }

  // A message that is not sent yet is replaced by the new one.
  void send(const Message& message) {
    next_ = message;
    write();
  }

  void end() {
    if (!is_finished_) {
      is_finished_ = true;
      this->Finish(grpc::Status::CANCELLED);
    }
  }

  void OnWriteDone(bool is_fine) override {
    loop_.post([this, is_fine] {
      is_writing_ = false;
      if (is_fine) {
        write();
      } else {
        end();
      }
    });
  }
  void OnCancel() override {
    loop_.post([this] { end(); });
  }
  void OnDone() override {
    loop_.post([this] {
      callbacks_.ended(*this);
      delete this;
    });
  }

 private:
  void write() {
    if (next_ && !is_writing_ && !is_finished_) {
      current_ = *std::exchange(next_, std::nullopt);
      is_writing_ = true;
      this->StartWrite(&current_);
    }
  }

  kernel::EventLoop& loop_;
  Callbacks callbacks_;
  Message current_;  // gRPC reads it while it writes
  std::optional<Message> next_;
  bool is_writing_ = false;
  bool is_finished_ = false;
};

}  // namespace hf::plugin
