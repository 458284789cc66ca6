// Output: where answers and complaints go.
#pragma once

#include <string>

#include "core/base/result.h"

namespace CLI {
class App;
}

namespace hf::programs {

struct Output {
  std::string format = "text";

  [[nodiscard]] bool is_json() const { return format == "json"; }
};

void add_output(CLI::App& command, Output& output);  // -o text|json

void print(const std::string& text);  // to standard output
int complain(const Error& error);     // one line to standard error; the exit code that goes with it

}  // namespace hf::programs
