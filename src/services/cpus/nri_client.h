// NriClient: a connection to the engine's NRI socket that is opened again whenever it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "adapters/config/config.h"
#include "adapters/nri/session.h"
#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"

namespace hf::cpus {

class NriClient {
 public:
  using Log = std::function<void(const std::string& line, bool is_warning)>;

  NriClient(kernel::EventLoop& loop, config::NriSettings settings, nri::Handlers handlers, Log log);
  NriClient(const NriClient&) = delete;
  NriClient& operator=(const NriClient&) = delete;
  ~NriClient() { disconnect(); }

  void work(std::uint64_t now);  // connects where it is due
  [[nodiscard]] std::uint64_t next_due() const { return due_; }

 private:
  void connect(std::uint64_t now);
  void disconnect();
  void read();
  bool send(std::string_view bytes);
  void end(const std::string& why);

  kernel::EventLoop& loop_;
  config::NriSettings settings_;
  nri::Handlers handlers_;
  Log log_;
  kernel::Fd socket_;
  std::optional<nri::Session> session_;
  std::string problem_;  // that was logged last
  std::uint64_t due_ = 0;
};

}  // namespace hf::cpus
