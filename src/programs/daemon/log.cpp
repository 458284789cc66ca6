#include "programs/daemon/log.h"

#include <cstdlib>
#include <utility>

#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "core/base/text.h"
#include "render/json_string.h"

namespace hf::programs {
namespace {

bool is_journal() {
  return std::getenv("JOURNAL_STREAM") != nullptr;  // NOLINT(concurrency-mt-unsafe): the environment is never changed
}

}  // namespace

Log::Log(Format format)
    : format_(format),
      is_journal_(is_journal()),
      logger_(std::make_shared<spdlog::logger>("holdfast", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_pattern(format == Format::json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%v})"
                       : is_journal_          ? "%v"
                                              : "%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger_->flush_on(spdlog::level::info);
}

Log::~Log() = default;

// The guard must not block on a log that is not read. Kernel: a pipe that is writable has room for 4 KiB.
bool Log::can_write() {
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
    ++dropped_;
    return false;
  }
  return true;
}

void Log::write(const std::string& line, bool is_warning) {
  const std::lock_guard held(mutex_);
  if (!can_write()) {
    return;
  }
  put(line, is_warning);
  if (dropped_ > 0 && can_write()) {
    put("log-lines-dropped count=" + std::to_string(std::exchange(dropped_, 0)), true);
  }
}

void Log::put(const std::string& line, bool is_warning) {
  constexpr std::size_t kLongest = 1900;  // below 4 KiB with time and level, even if JSON escapes every character
  const spdlog::level::level_enum level = is_warning ? spdlog::level::warn : spdlog::level::info;
  const std::string clean = printable(line.substr(0, kLongest));
  if (format_ == Format::json) {
    logger_->log(level, report::json_string(clean));
  } else if (is_journal_) {
    logger_->log(level, (is_warning ? "<4>" : "<6>") + clean);
  } else {
    logger_->log(level, clean);
  }
}

}  // namespace hf::programs
