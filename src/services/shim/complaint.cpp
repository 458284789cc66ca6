#include "services/shim/complaint.h"

#include <array>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/fd.h"

namespace hf::shim {
namespace {

std::string time_now() {
  const std::time_t now = ::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// Escapes printable text; the result is valid in JSON and in logrus' text format.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char character : text) {
    result += character == '"' || character == '\\' ? "\\" : "";
    result += character;
  }
  return result;
}

// crun also accepts log targets that are not files; "" for those.
std::string file_of(const std::string& log) {
  const bool is_elsewhere = log.starts_with("journald:") || log.starts_with("syslog:");
  return is_elsewhere ? std::string() : log.starts_with("file:") ? log.substr(5) : log;
}

void write_log(const oci::CommandLine& line, const char* level, const std::string& complaint) {
  const kernel::Fd log(
      ::open(file_of(line.log).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
  const std::string message = escaped("holdfast-runtime: " + complaint);
  std::string text;
  if (line.log_format == "json") {
    text = R"({"level":")" + std::string(level) + R"(","msg":")" + message + R"(","time":")" + time_now() + "\"}\n";
  } else {
    text = "time=\"" + time_now() + "\" level=" + level + " msg=\"" + message + "\"\n";
  }
  if (log) {
    [[maybe_unused]] const ssize_t written = ::write(log.get(), text.data(), text.size());
  }
}

const char* name_of(Level level) {
  switch (level) {
    case Level::info: return "info";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "";
}

}  // namespace

void complain(const oci::CommandLine& line, Level level, const std::string& message) {
  constexpr std::size_t kLongest = 4096;  // bounded because much of the message comes from the image
  const std::string text = printable(message.substr(0, kLongest)) + (message.size() > kLongest ? "…" : "");
  if (!line.log.empty()) {
    write_log(line, name_of(level), text);
  }
  if (level != Level::info) {
    (void)std::fprintf(stderr, "holdfast-runtime: %s\n", text.c_str());
  }
}

void write_decision(const std::string& file, const oci::CommandLine& line, const std::string& decision) {
  const kernel::Fd log(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600));
  const std::string text = time_now() + " pid=" + std::to_string(::getpid()) +
                           " container=" + quote(printable(line.container)) + " " + printable(decision) + "\n";
  if (log) {
    [[maybe_unused]] const ssize_t written = ::write(log.get(), text.data(), text.size());
  }
}

}  // namespace hf::shim
