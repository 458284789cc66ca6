// Server: shows the board to visitors over TCP and a socket at a path. It answers questions; nothing changes by asking.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/base/result.h"
#include "services/web/board.h"
#include "services/web/details.h"

namespace hf::web {

class Loop;

struct Settings {
  std::string address;  // "127.0.0.1:9465", "" for none
  std::string socket;   // a path, "" for none
  Details over_tcp = Details::hidden;
  // Told what the server listens on, and what not; from its thread, and while it starts.
  std::function<void(const std::string& line, bool is_warning)> log = {};
};

// One thread serves all, without any capability. It waits for nobody: who is slow or silent is left behind at a
// deadline.
class Server {
 public:
  // The board must outlive the server. An address that another process has taken is tried again until it is free.
  static Result<std::unique_ptr<Server>> start(const Settings& settings, const Board& board);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // at once, also with open streams

  [[nodiscard]] std::string address() const;  // with the port it really has; "" where there is none

 private:
  explicit Server(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace hf::web
