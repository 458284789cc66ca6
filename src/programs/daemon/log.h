// Log: writes one line for each decision, as text for journald or as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace spdlog {
class logger;
}

namespace hf::programs {

class Log {
 public:
  // text: has journald's priority prefix if standard error is the journal. json: time, level and message.
  enum class Format : std::uint8_t { text, json };

  explicit Log(Format format);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Never blocks: if the log is not read, lines are dropped and counted.
  void write(const std::string& line, bool is_warning);

 private:
  bool can_write();
  void put(const std::string& line, bool is_warning);

  std::mutex mutex_;
  std::uint64_t dropped_ = 0;
  Format format_;
  bool is_journal_;
  std::shared_ptr<spdlog::logger> logger_;  // shared with spdlog's registry
};

}  // namespace hf::programs
