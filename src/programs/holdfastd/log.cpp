#include "programs/holdfastd/log.h"

#include <cstdlib>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/report/text_table.h"
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

void Log::write(const std::string& line, bool is_warning) {
  const spdlog::level::level_enum level = is_warning ? spdlog::level::warn : spdlog::level::info;
  const std::string clean = report::on_one_line(line);
  if (format_ == Format::json) {
    logger_->log(level, report::json_word(clean));
  } else if (is_journal_) {
    logger_->log(level, (is_warning ? "<4>" : "<6>") + clean);
  } else {
    logger_->log(level, clean);
  }
}

}  // namespace hf::programs
