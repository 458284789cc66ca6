// Connection: one TLS or plain connection to the API server, on which every operation has a deadline.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "adapters/apiserver/access.h"
#include "adapters/apiserver/client.h"
#include "adapters/apiserver/lookup.h"
#include "core/base/result.h"
#include "kernel/net/stream.h"

namespace hf::apiserver {

class Connection {
 public:
  // `is_cancelled` is read every few milliseconds while an operation waits.
  static Result<std::unique_ptr<Connection>> open(const Access& access, const std::atomic<bool>& is_cancelled,
                                                  kernel::Clock::time_point deadline,
                                                  const Resolve& resolve = ask_resolver);

  virtual ~Connection() = default;
  // The answer, and whether the connection can be used again.
  struct Answer {
    Response response;
    bool is_kept = false;
  };
  // Errors after the whole request was sent have Reason::unanswered (client.h).
  virtual Result<Answer> exchange(const Request& request, const std::string& token,
                                  kernel::Clock::time_point deadline) = 0;
};

}  // namespace hf::apiserver
