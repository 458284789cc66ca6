#include "programs/console/output.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "core/base/text.h"
#include "programs/console/exit_code.h"
#include "render/text_table.h"
#include "render/yaml.h"

namespace hf::programs {
namespace {

const char* colour_of(char mark) {
  switch (mark) {
    case report::kRed: return "\033[31m";
    case report::kYellow: return "\033[33m";
    case report::kGreen: return "\033[32m";
    case report::kBold: return "\033[1m";
    default: return "\033[0m";
  }
}

// Keeps line breaks and turns our marks into colours; everything else is made printable.
std::string sanitise(std::string_view text, bool coloured) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const auto* const special = std::ranges::find_if(
        text, [](char byte) { return byte == '\n' || (byte >= report::kRed && byte <= report::kPlain); });
    const auto length = std::size_t(special - text.begin());
    safe += printable(text.substr(0, length));
    if (special != text.end()) {
      safe += *special == '\n' ? "\n" : coloured ? colour_of(*special) : "";
    }
    text.remove_prefix(std::min(text.size(), length + 1));
  }
  return safe;
}

bool is_dumb() {
  const char* const terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) == "dumb";
}

bool is_coloured() { return can_overwrite(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr; }

}  // namespace

void fill_standard_files() {
  while (true) {
    const int file = ::open("/dev/null", O_RDWR);
    if (file < 0 || file > STDERR_FILENO) {
      ::close(file);
      return;
    }
  }
}

void add_output(CLI::App& command, Output& output, const std::vector<std::string>& formats) {
  command.add_option("-o,--output", output.format, "the output format (docs/JSON.md)")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
}

std::string in_format(const Output& output, const std::string& json) {
  return output.format == "yaml" ? report::json_to_yaml(json) : json;
}

// Names of cgroups and programs are untrusted and must not control the terminal; only our colour marks may.
void print(const std::string& text) {
  const std::string safe = sanitise(text, is_coloured());
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

std::size_t terminal_width() {
  winsize size{};
  const bool is_terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_terminal ? size.ws_col : report::kAnyWidth;
}

bool can_overwrite(int file) { return ::isatty(file) == 1 && !is_dumb(); }

void clear_screen() {
  if (can_overwrite(STDOUT_FILENO)) {
    std::fputs("\033[H\033[2J", stdout);
  }
}

// A separate thread, because the working thread cannot know how long it will take.
struct Progress::Ticker {
  std::mutex lock;
  std::condition_variable wake;
  bool stop = false;
  std::thread thread;
};

Progress::Progress(std::string activity)
    : ticker_(can_overwrite(STDERR_FILENO) ? std::make_unique<Ticker>() : nullptr) {
  if (!ticker_) {
    return;
  }
  Ticker& ticker = *ticker_;
  ticker.thread = std::thread([&ticker, activity = std::move(activity)] {
    std::unique_lock hold(ticker.lock);
    if (ticker.wake.wait_for(hold, std::chrono::seconds(1), [&ticker] { return ticker.stop; })) {
      return;
    }
    std::fprintf(stderr, "%s …", activity.c_str());
    ticker.wake.wait(hold, [&ticker] { return ticker.stop; });
    std::fputs("\r\033[K", stderr);
  });
}

Progress::~Progress() { done(); }

void Progress::done() const {
  if (!ticker_ || !ticker_->thread.joinable()) {
    return;
  }
  {
    const std::scoped_lock hold(ticker_->lock);
    ticker_->stop = true;
  }
  ticker_->wake.notify_one();
  ticker_->thread.join();
}

ProgressCount::ProgressCount() : can_overwrite_(can_overwrite(STDERR_FILENO)) {}

ProgressCount::~ProgressCount() { done(); }

void ProgressCount::show(const std::string& text) {
  constexpr std::chrono::seconds kQuiet{1};
  if (!can_overwrite_ || text == shown_ || std::chrono::steady_clock::now() - started_ < kQuiet) {
    return;
  }
  shown_ = text;
  (void)std::fprintf(stderr, "\r%s\033[K", printable(text).c_str());
}

void ProgressCount::done() {
  if (!shown_.empty()) {
    std::fputs("\r\033[K", stderr);
    shown_.clear();
  }
}

void warn(const std::string& text) { (void)std::fprintf(stderr, "holdfast: %s\n", text.c_str()); }

int complain(const Error& error) {
  const bool lacks_rights =
      error.code == std::errc::operation_not_permitted || error.code == std::errc::permission_denied;
  const char* hint = lacks_rights && ::geteuid() != 0 ? ": needs root (try sudo)" : "";
  std::fprintf(stderr, "holdfast: %s%s\n", printable(error.message).c_str(), hint);
  return kCannotTell;
}

}  // namespace hf::programs
