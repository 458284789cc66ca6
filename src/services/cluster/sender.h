// Sender: requests that wait for the API server, and the only place that decides when one is sent again. It neither
// waits nor sends: its caller does, and gives the time and random numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>

#include "adapters/apiserver/client.h"
#include "core/base/result.h"

namespace hf::cluster {

class Sender {
 public:
  using Done = std::function<void(Result<apiserver::Response>)>;
  using Log = std::function<void(const std::string& line, bool is_warning)>;

  static constexpr std::uint64_t kNever = ~std::uint64_t(0);
  static constexpr std::size_t kMostWaiting = 256;

  explicit Sender(Log log) : log_(std::move(log)) {}

  // Where too many wait the oldest is dropped: its `done` gets an error.
  void add(apiserver::Request request, Done done);

  // The request to be sent now; null: there is none, or it has to wait. Nanoseconds of CLOCK_MONOTONIC.
  [[nodiscard]] const apiserver::Request* next(std::uint64_t now) const;
  [[nodiscard]] std::uint64_t next_due() const { return waiting_.empty() ? kNever : due_; }
  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }

  // What became of next(). `random`: from 0 to 1.
  void settle(Result<apiserver::Response> answer, std::uint64_t now, double random);

  void drop_all();  // the thread ends
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  [[nodiscard]] bool is_away() const { return state_ == State::away; }

 private:
  // Each change of the state is one line in the log.
  enum class State : std::uint8_t { unknown, answers, away, refuses };
  struct Waiting {
    apiserver::Request request;
    Done done;
    unsigned attempts = 0;  // that the server answered with an error of its own
  };

  void finish(Result<apiserver::Response> answer);
  void retry(std::uint64_t now, std::uint64_t pause);
  std::uint64_t next_pause(double random);
  void enter(State state, const std::string& why);
  void note_refusal(const apiserver::Response& response);

  Log log_;
  std::deque<Waiting> waiting_;
  std::uint64_t due_ = 0;
  std::uint64_t pause_ = 0;  // before the next attempt, at most
  State state_ = State::unknown;
  std::set<std::string> forbidden_;  // methods and resources, as the log has said
  std::uint64_t dropped_ = 0;
};

// "events" of "/api/v1/namespaces/ml/events/x", "nodes/status" of "/api/v1/nodes/gpu-7/status"
std::string resource_of(const std::string& path);

}  // namespace hf::cluster
