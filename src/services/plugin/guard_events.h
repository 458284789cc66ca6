// GuardEvents: what holdfastd reports about lost devices, read from its socket.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/report/blame.h"
#include "kernel/files/clock.h"
#include "kernel/files/fd.h"
#include "kernel/net/event_loop.h"

namespace hf::plugin {

class GuardEvents {
 public:
  using Report = std::function<void(const report::BlameRecord&)>;  // each record, once

  // `path`: of holdfastd's socket; "": there is none. `history`: seconds before the start whose records are reported
  // too.
  GuardEvents(kernel::EventLoop& loop, std::string path, std::uint32_t history, Report report)
      : loop_(loop),
        path_(std::move(path)),
        report_(std::move(report)),
        history_(history),
        started_(kernel::monotonic_now()) {}
  GuardEvents(const GuardEvents&) = delete;
  GuardEvents& operator=(const GuardEvents&) = delete;
  ~GuardEvents() { disconnect(); }

  void work(std::uint64_t now);  // connects where it is due: holdfastd may start later, and end
  [[nodiscard]] std::uint64_t next_due() const { return due_; }

 private:
  void connect(std::uint64_t now);
  void disconnect();
  void read();
  void read_lines();
  bool is_new(const report::BlameRecord& record);

  kernel::EventLoop& loop_;
  std::string path_;
  Report report_;
  kernel::Fd socket_;
  std::string unread_;
  std::uint64_t due_ = 0;
  std::uint32_t history_;          // seconds
  std::uint64_t started_;          // nanoseconds of CLOCK_MONOTONIC
  std::uint64_t last_number_ = 0;  // of the records that were reported
  std::int64_t last_at_ = 0;
};

}  // namespace hf::plugin
