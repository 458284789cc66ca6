// Server: serves the board's content over TCP and a unix socket. It is read-only: no request changes anything.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "services/web/board.h"
#include "services/web/details.h"

namespace hf::web {

struct Settings {
  std::string address;  // "127.0.0.1:9465", "" for none
  std::string socket;   // a path, "" for none
  Details over_tcp = Details::hidden;
  // Called with what the server listens on and what failed, from its thread and while it starts.
  std::function<void(const std::string& line, bool is_warning)> log = {};
};

// One thread without any capability serves all clients. It never waits for one: slow or silent clients are closed at a
// deadline.
class Server {
 public:
  // The board must outlive the server. An address that another process has taken is tried again until it is free.
  static Result<std::unique_ptr<Server>> start(const Settings& settings, const Board& board);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // stops at once, also with open streams

  [[nodiscard]] std::string address() const;  // with the actual port; "" if there is none

 private:
  class Service;

  explicit Server(std::unique_ptr<Service> service);

  std::unique_ptr<Service> service_;
};

}  // namespace hf::web
