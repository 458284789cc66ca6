#include "services/web/server.h"

#include "services/web/loop.h"

namespace hf::web {

Result<std::unique_ptr<Server>> Server::start(const Settings& settings, const Board& board) {
  std::unique_ptr<Loop> loop = TRY(Loop::open(settings, board));
  return std::unique_ptr<Server>(new Server(std::move(loop)));
}

Server::Server(std::unique_ptr<Loop> loop) : loop_(std::move(loop)), thread_([this] { loop_->run(); }) {}

Server::~Server() {
  loop_->stop();
  thread_.join();
}

std::string Server::address() const { return loop_->address(); }

}  // namespace hf::web
