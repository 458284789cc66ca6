// GuardReader: asks holdfastd for its snapshot, over its socket.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/notice/host_state.h"
#include "kernel/files/host.h"
#include "kernel/net/stream.h"

namespace hf::cluster {

class GuardReader {
 public:
  GuardReader(const kernel::Host& host, std::string socket) : host_(host), socket_(std::move(socket)) {}

  // Absent where nothing has changed since the last call that returned a state.
  Result<std::optional<notice::HostState>> read(kernel::Clock::time_point deadline);

 private:
  const kernel::Host& host_;
  std::string socket_;
  std::string tag_;  // of the state that was returned last
};

// The answer to an HTTP request, as far as holdfastd's answers need it.
struct GuardAnswer {
  unsigned status = 0;
  std::string tag;
  std::string_view body;
};
Result<GuardAnswer> parse_answer(std::string_view text);

}  // namespace hf::cluster
