#include "output.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/report/text_table.h"

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

// How many bytes of valid UTF-8 begin here, and not one of the control characters above 7f; 0 for none.
std::size_t length_of_letter(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : (lead & 0xf0U) == 0xe0      ? 3
                             : (lead & 0xf8U) == 0xf0      ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U) {
      return 0;
    }
  }
  const bool is_control = length == 2 && lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
  return is_control ? 0 : length;
}

std::string harmless(std::string_view text, bool coloured) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char byte = text[i];
    const auto code = static_cast<unsigned char>(byte);
    const std::size_t length = length_of_letter(text.substr(i));
    if (byte >= report::kRed && byte <= report::kPlain) {
      safe += coloured ? colour_of(byte) : "";
    } else if (length == 0 || (code < 0x20 && byte != '\n') || code == 0x7f) {
      safe += '?';
    } else {
      safe += text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return safe;
}

}  // namespace

void add_output(CLI::App& command, Output& output, const std::vector<std::string>& formats) {
  command.add_option("-o,--output", output.format, "the form of the answer (docs/JSON.md)")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
}

// Names of cgroups and programs are others' words: they must not speak to the terminal. Only our marks for colours do.
void print(const std::string& text) {
  const bool coloured = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  const std::string safe = harmless(text, coloured);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

void clear_screen() {
  if (::isatty(STDOUT_FILENO) == 1) {
    std::fputs("\033[H\033[2J", stdout);
  }
}

// A thread of its own: whoever works does not know how long it takes.
struct Progress::Ticker {
  std::mutex lock;
  std::condition_variable wake;
  bool stop = false;
  std::thread thread;
};

Progress::Progress(std::string words) : ticker_(::isatty(STDERR_FILENO) == 1 ? std::make_unique<Ticker>() : nullptr) {
  if (!ticker_) {
    return;
  }
  Ticker& ticker = *ticker_;
  ticker.thread = std::thread([&ticker, words = std::move(words)] {
    std::unique_lock hold(ticker.lock);
    if (ticker.wake.wait_for(hold, std::chrono::seconds(1), [&ticker] { return ticker.stop; })) {
      return;
    }
    std::fprintf(stderr, "%s …", words.c_str());
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

int complain(const Error& error) {
  const bool lacks_rights =
      error.code == std::errc::operation_not_permitted || error.code == std::errc::permission_denied;
  const char* hint = lacks_rights && ::geteuid() != 0 ? " (run it as root)" : "";
  std::string message = error.message;
  std::ranges::replace(message, '\n', '?');
  message = harmless(message, false);
  std::fprintf(stderr, "holdfast: %s%s\n", message.c_str(), hint);
  return kCannotTell;
}

}  // namespace hf::programs
