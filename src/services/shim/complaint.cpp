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

std::string json_words(const std::string& words) {
  std::string made;
  for (const char letter : words) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      made += '\\';
    }
    made += code < ' ' ? ' ' : letter;
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
  const std::string escaped = json_words("holdfast-runtime: " + words);
  std::string text;
  if (line.log_format == "json") {
    text = R"({"level":")" + std::string(level) + R"(","msg":")" + escaped + R"(","time":")" + time_now() + "\"}\n";
  } else {
    text = "time=\"" + time_now() + "\" level=" + level + " msg=\"" + escaped + "\"\n";
  }
  if (log) {
    [[maybe_unused]] const ssize_t written = ::write(log.get(), text.data(), text.size());
  }
}

}  // namespace

void complain(const oci::CommandLine& line, Grade grade, const std::string& words) {
  if (!line.log.empty()) {
    write_log(line, grade == Grade::error ? "error" : "warning", words);
  }
  (void)std::fprintf(stderr, "holdfast-runtime: %s\n", words.c_str());
}

}  // namespace hf::shim
