// Output: prints reports to standard output and errors to standard error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace CLI {
class App;
}

namespace hf::programs {

struct Output {
  std::string format = "text";

  [[nodiscard]] bool is_json() const { return format == "json"; }
};

void add_output(CLI::App& command, Output& output, const std::vector<std::string>& formats = {"text", "json"});  // -o

void print(const std::string& text);  // to standard output; marks become colours on a terminal
void clear_screen();                  // only if standard output is a terminal

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

void warn(const std::string& text);  // one line to standard error
int complain(const Error& error);    // prints one line to standard error; returns the exit code for it

}  // namespace hf::programs
