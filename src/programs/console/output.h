// Output: prints reports to standard output and errors to standard error.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace CLI {
class App;
}

namespace hf::programs {

// At the start: files that we open must not get the descriptor of a closed standard stream, to which libraries may
// write.
void fill_standard_files();

struct Output {
  std::string format = "text";

  [[nodiscard]] bool is_text() const { return format != "json" && format != "yaml"; }
};

void add_output(CLI::App& command, Output& output,
                const std::vector<std::string>& formats = {"text", "json", "yaml"});  // -o

std::string in_format(const Output& output, const std::string& json);  // as it is, or as YAML
void print(const std::string& text);  // to standard output; marks become colours on a terminal
std::size_t terminal_width();         // of standard output; unlimited where it is no terminal
bool can_overwrite(int file);         // it is a terminal that knows escape sequences
void clear_screen();                  // only if standard output can be overwritten

// Shows a line on a terminal's standard error if work takes more than a second, and removes it when the work is done.
class Progress {
 public:
  explicit Progress(std::string activity);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void done() const;

 private:
  struct Ticker;
  std::unique_ptr<Ticker> ticker_;
};

// The same for work that counts, and says so often: "asked 120 of 500 nodes".
class ProgressCount {
 public:
  ProgressCount();
  ProgressCount(const ProgressCount&) = delete;
  ProgressCount& operator=(const ProgressCount&) = delete;
  ~ProgressCount();

  void show(const std::string& text);
  void done();

 private:
  bool can_overwrite_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::string shown_;
};

void warn(const std::string& text);  // one line to standard error
int complain(const Error& error);    // prints one line to standard error; returns the exit code for it

}  // namespace hf::programs
