// Sender: requests that wait for the API server, and the only place that decides when one is sent again. It neither
// waits nor sends: its caller does, and gives the time and random numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
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

  // Where too many wait the oldest is dropped: its `done` gets an error, as that of one whose deadline is over.
  void add(apiserver::Request request, Done done);

  // The request to be sent now, under way until settle(); null: there is none, or it has to wait. Times are nanoseconds
  // of CLOCK_MONOTONIC.
  const apiserver::Request* next(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;
  // Nothing is sent before: the server is away, or has just refused something.
  [[nodiscard]] std::uint64_t paused_until() const { return due_; }

  // What became of next(): where the server did not take it for now (429, 5xx, no answer to what was sent completely)
  // it goes behind the others, and is given up after some attempts. A server that cannot be reached holds all of them.
  // `random`: from 0 to 1.
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
    unsigned attempts = 0;  // that the server did not take
    std::uint64_t due = 0;
  };

  void drop_late(std::uint64_t now);
  void postpone(Waiting sent, Result<apiserver::Response> answer, std::uint64_t now, double random);
  std::uint64_t next_pause(double random);
  void enter(State state, const std::string& why);
  void note_refusal(const apiserver::Request& request, const apiserver::Response& response);
  void note_failure(const Waiting& sent, const Result<apiserver::Response>& answer);
  void note_answer(const apiserver::Request& request);

  Log log_;
  std::deque<Waiting> waiting_;
  std::optional<Waiting> sent_;  // is under way
  std::uint64_t due_ = 0;        // of all
  std::uint64_t pause_ = 0;      // before the next attempt, at most; 0: the last one succeeded
  State state_ = State::unknown;
  std::map<std::string, unsigned> refused_;  // methods and resources with their status, as the log has said
  std::set<std::string> failing_;            // the same of those that get 5xx or no answer
  std::uint64_t dropped_ = 0;
};

// "events" of "/api/v1/namespaces/ml/events/x", "nodes/status" of "/api/v1/nodes/gpu-7/status"
std::string resource_of(const std::string& path);

}  // namespace hf::cluster
