// Loop: the server's only thread: it accepts clients, answers them, and closes them at their deadlines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "kernel/net/poller.h"
#include "kernel/net/socket.h"
#include "services/web/board.h"
#include "services/web/connection.h"
#include "services/web/event_log.h"
#include "services/web/pages.h"
#include "services/web/server.h"

namespace hf::web {

class Loop {
 public:
  static constexpr std::size_t kMostConnections = 128;
  static constexpr std::size_t kMostStreams = 16;

  static Result<std::unique_ptr<Loop>> open(const Settings& settings, const Board& board);

  [[nodiscard]] const std::string& address() const { return address_; }
  void run();         // until stopped
  void stop() const;  // from another thread

 private:
  using Connections = std::map<std::uint64_t, Connection>;  // by an ascending number: the oldest comes first

  Loop(kernel::Poller poller, const Settings& settings, const Board& board);
  Result<void> listen();
  Result<void> listen_on_address();
  void log(const std::string& line, bool is_warning) const;
  [[nodiscard]] Details details_for(const Connection& connection) const;

  void dispatch(const kernel::Ready& ready);
  void accept_clients(const kernel::Fd& listener, Transport transport);
  void add_client(kernel::Fd socket, Transport transport);
  void evict_if_full();
  void serve(Connections::iterator client, const kernel::Ready& ready);
  bool advance(Connection& connection);  // false: close it
  bool read_request(Connection& connection);
  void answer(Connection& connection, const std::string& head);
  [[nodiscard]] Reply reply_to(const Connection& connection, const Request& request);
  void open_stream(Connection& connection, const Request& request);
  bool queue_events(Connection& connection);
  void update_streams();
  void expire();
  [[nodiscard]] std::size_t streams() const;
  [[nodiscard]] std::optional<std::uint64_t> time_left() const;

  kernel::Poller poller_;
  kernel::Wakeup stop_;
  const Board& board_;
  std::shared_ptr<const kernel::Wakeup> published_;  // signalled by the board
  Settings settings_;
  kernel::Fd tcp_;
  std::uint64_t listen_at_ = 0;  // when an address in use is tried again; 0: never
  std::optional<kernel::UnixListener> unix_listener_;
  std::string address_;
  std::string own_name_;
  Pages pages_;
  EventLog records_;
  Connections connections_;
  std::uint64_t next_key_;
};

}  // namespace hf::web
