#include "services/cpus/placement_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include <sys/socket.h>

#include "kernel/files/clock.h"

namespace hf::cpus {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLongestWait = 500 * kMillisecond;  // a runtime gives up long before
constexpr std::size_t kMostClients = 256;
constexpr std::size_t kLongestId = 1024;  // runc's own limit

}  // namespace

Result<std::unique_ptr<PlacementServer>> PlacementServer::open(kernel::EventLoop& loop, Settings settings) {
  kernel::UnixListener listener = TRY(kernel::UnixListener::open(settings.socket));
  std::unique_ptr<PlacementServer> server(new PlacementServer(loop, std::move(settings), std::move(listener)));
  TRY(loop.watch(server->listener_.fd().get(), [raw = server.get()] { raw->accept(); }));
  return server;
}

PlacementServer::~PlacementServer() {
  for (const auto& [descriptor, client] : clients_) {
    loop_.unwatch(descriptor);
  }
  loop_.unwatch(listener_.fd().get());
}

void PlacementServer::accept() {
  Result<kernel::Fd> accepted = kernel::accept_one(listener_.fd().get());
  if (!accepted || clients_.size() >= kMostClients) {
    return;
  }
  const int descriptor = accepted->get();
  if (loop_.watch(descriptor, [this, descriptor] { read(descriptor); })) {
    clients_[descriptor] = {.socket = *std::move(accepted), .container = "", .since = kernel::monotonic_now()};
  }
}

void PlacementServer::close(int descriptor) {
  loop_.unwatch(descriptor);
  clients_.erase(descriptor);
}

// The id comes as one line. A client that sends more, or closes its end, does not wait any longer.
void PlacementServer::read(int descriptor) {
  std::array<char, kLongestId + 1> buffer{};
  const ssize_t count = ::recv(descriptor, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  Client& client = clients_.at(descriptor);
  const std::string line(buffer.data(), count > 0 ? std::size_t(count) : 0);
  const std::size_t end = line.find('\n');
  if (!client.container.empty() || end == std::string::npos || end == 0) {
    close(descriptor);
    return;
  }
  client.container = line.substr(0, end);
  if (settings_.is_placed(client.container)) {
    close(descriptor);
  }
}

void PlacementServer::answer() {
  std::vector<int> placed;
  for (const auto& [descriptor, client] : clients_) {
    if (!client.container.empty() && settings_.is_placed(client.container)) {
      placed.push_back(descriptor);
    }
  }
  for (const int descriptor : placed) {
    close(descriptor);
  }
}

void PlacementServer::work(std::uint64_t now) {
  std::vector<int> expired;
  for (const auto& [descriptor, client] : clients_) {
    if (now - client.since >= kLongestWait) {
      expired.push_back(descriptor);
    }
  }
  for (const int descriptor : expired) {
    close(descriptor);
  }
}

std::uint64_t PlacementServer::next_due() const {
  std::uint64_t due = kernel::EventLoop::kNever;
  for (const auto& [descriptor, client] : clients_) {
    due = std::min(due, client.since + kLongestWait);
  }
  return due;
}

}  // namespace hf::cpus
