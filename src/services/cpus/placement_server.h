// PlacementServer: runtimes wait here, between the creation of a container and its start, until the container has its
// CPUs. They wait for a short time only, so that no container depends on this server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"
#include "kernel/net/socket.h"

namespace hf::cpus {

class PlacementServer {
 public:
  struct Settings {
    std::string socket;
    std::function<bool(const std::string& container)> is_placed;
  };

  static Result<std::unique_ptr<PlacementServer>> open(kernel::EventLoop& loop, Settings settings);
  PlacementServer(const PlacementServer&) = delete;
  PlacementServer& operator=(const PlacementServer&) = delete;
  ~PlacementServer();

  void answer();                 // after containers were placed
  void work(std::uint64_t now);  // forgets clients that have waited for too long
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  struct Client {
    kernel::Fd socket;
    std::string container;  // "": not read yet
    std::uint64_t since = 0;
  };

  PlacementServer(kernel::EventLoop& loop, Settings settings, kernel::UnixListener listener)
      : loop_(loop), settings_(std::move(settings)), listener_(std::move(listener)) {}
  void accept();
  void read(int descriptor);
  void close(int descriptor);

  kernel::EventLoop& loop_;
  Settings settings_;
  kernel::UnixListener listener_;
  std::map<int, Client> clients_;  // by descriptor
};

}  // namespace hf::cpus
