#include "programs/holdfastd/log.h"

#include <cstdlib>
#include <utility>

#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/report/utf8.h"

namespace hf::programs {
namespace {

bool is_journal() {
  return std::getenv("JOURNAL_STREAM") != nullptr;  // NOLINT(concurrency-mt-unsafe): nobody changes it
}

}  // namespace

Log::Log(Format format)
    : format_(format),
      is_journal_(is_journal()),
      logger_(std::make_shared<spdlog::logger>("holdfastd", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_pattern(format == Format::json ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%e%z\",\"level\":\"%l\",\"message\":%v}"
                       : is_journal_          ? "%v"
                                              : "%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger_->flush_on(spdlog::level::info);
}

Log::~Log() = default;

// Guarding does not wait for a log that is not read: Kernel: where a pipe can be written to at all, 4 KiB fit.
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
  constexpr std::size_t kLongest = 1900;  // with time and level below 4 KiB, also where JSON doubles every letter
  const spdlog::level::level_enum level = is_warning ? spdlog::level::warn : spdlog::level::info;
  const std::string clean = printable(line.substr(0, kLongest));
  if (format_ == Format::json) {
    logger_->log(level, report::json_word(clean));
  } else if (is_journal_) {
    logger_->log(level, (is_warning ? "<4>" : "<6>") + clean);
  } else {
    logger_->log(level, clean);
  }
}

}  // namespace hf::programs
