// Server: shows the board to visitors over TCP and a socket at a path. It answers questions; nothing changes by asking.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "core/base/result.h"
#include "services/web/board.h"

namespace hf::web {

class Loop;

struct Settings {
  std::string address;  // "127.0.0.1:9465", "" for none
  std::string socket;   // a path, "" for none
};

// One thread serves all. It waits for nobody: who is slow or silent is left behind at a deadline.
class Server {
 public:
  // The board must outlive the server.
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
