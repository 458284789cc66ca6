// Client: sends requests to the Kubernetes API server, one at a time over one kept connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "adapters/apiserver/access.h"
#include "core/base/result.h"
#include "kernel/net/stream.h"

namespace hf::apiserver {

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kStrategicMerge = "application/strategic-merge-patch+json";
inline constexpr const char* kMerge = "application/merge-patch+json";
inline constexpr std::uint64_t kNoDeadline = INT64_MAX;

struct Request {
  std::string method;
  std::string path;  // with its query, without the prefix
  std::string body = {};
  std::string content_type = kJson;
  std::uint64_t deadline = kNoDeadline;  // nanoseconds of CLOCK_MONOTONIC: no caller waits for a later answer

  friend bool operator==(const Request&, const Request&) = default;
};

struct Response {
  unsigned status = 0;
  std::string body = {};
  std::optional<std::chrono::seconds> retry_after = std::nullopt;
};

inline bool is_unanswered(const Error& error) { return error.reason == Reason::unanswered; }

// Blocking, with a deadline: for threads that may wait. One thread calls send().
class Client {
 public:
  explicit Client(Access access);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // An HTTP status is no error. A kept connection that turns out to be broken is opened again once. The token is read
  // again after a 401, for the next request. The request's own deadline counts where it is earlier. After the whole
  // request was sent the reason is unanswered: no answer came in time (timed_out), the connection ended, or the answer
  // is not HTTP (connection_aborted).
  Result<Response> send(const Request& request, kernel::Clock::time_point deadline);
  // Called from any thread: the request under way, and all later ones, end with std::errc::operation_canceled.
  void cancel();

  [[nodiscard]] const Access& access() const { return access_; }

 private:
  struct State;

  Result<void> read_token(kernel::Clock::time_point now);
  Result<Response> send_once(const Request& request, kernel::Clock::time_point deadline);

  Access access_;
  std::unique_ptr<State> state_;
};

}  // namespace hf::apiserver
