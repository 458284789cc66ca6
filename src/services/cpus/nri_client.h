// NriClient: a connection to the engine's NRI socket that is opened again whenever it ends, on a thread of its own: the
// engine waits for its answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "adapters/config/config.h"
#include "adapters/nri/session.h"
#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"

namespace hf::cpus {

class NriClient {
 public:
  using Log = std::function<void(const std::string& line, bool is_warning)>;

  // The handlers are called on that thread.
  NriClient(config::NriSettings settings, nri::Handlers handlers, Log log);
  NriClient(const NriClient&) = delete;
  NriClient& operator=(const NriClient&) = delete;
  ~NriClient();

 private:
  void work();
  void connect(std::uint64_t now);
  void disconnect();
  void read();
  bool send(std::string_view bytes);
  void end(const std::string& why);

  config::NriSettings settings_;
  nri::Handlers handlers_;
  Log log_;
  kernel::Fd socket_;
  std::optional<nri::Session> session_;
  std::string problem_;  // that was logged last
  std::uint64_t due_ = 0;
  bool stops_ = false;
  kernel::EventLoop loop_;
  std::thread thread_;  // the last: it uses all others
};

}  // namespace hf::cpus
