// Output: where answers and complaints go.
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
void clear_screen();                  // where standard output is a terminal

// A line on a terminal's standard error for work that takes more than a second; gone when it is done.
class Progress {
 public:
  explicit Progress(std::string words);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void done() const;

 private:
  struct Ticker;
  std::unique_ptr<Ticker> ticker_;
};

int complain(const Error& error);  // one line to standard error; the exit code that goes with it

}  // namespace hf::programs
