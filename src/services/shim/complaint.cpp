#include "services/shim/complaint.h"

#include <array>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/fd.h"

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

// Of printable text, for JSON and for logrus' text alike.
std::string escaped(const std::string& text) {
  std::string made;
  for (const char letter : text) {
    made += letter == '"' || letter == '\\' ? "\\" : "";
    made += letter;
  }
  return made;
}

// crun names other places than files, too; "" where it is none.
std::string file_of(const std::string& log) {
  const bool is_elsewhere = log.starts_with("journald:") || log.starts_with("syslog:");
  return is_elsewhere ? std::string() : log.starts_with("file:") ? log.substr(5) : log;
}

void write_log(const oci::CommandLine& line, const char* level, const std::string& words) {
  const kernel::Fd log(
      ::open(file_of(line.log).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
  const std::string message = escaped("holdfast-runtime: " + words);
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

}  // namespace

void complain(const oci::CommandLine& line, Grade grade, const std::string& said) {
  constexpr std::size_t kLongest = 4096;  // much of it is the image's
  const std::string words = printable(said.substr(0, kLongest)) + (said.size() > kLongest ? "…" : "");
  if (!line.log.empty()) {
    write_log(line, grade == Grade::error ? "error" : "warning", words);
  }
  (void)std::fprintf(stderr, "holdfast-runtime: %s\n", words.c_str());
}

}  // namespace hf::shim
