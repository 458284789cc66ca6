// Arguments: an argument vector or an environment for execve(2), which takes an array of pointers that ends with null.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hf::kernel {

class Arguments {
 public:
  explicit Arguments(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    pointers_.reserve(arguments_.size() + 1);
    for (std::string& argument : arguments_) {
      pointers_.push_back(argument.data());
    }
    pointers_.push_back(nullptr);
  }
  Arguments(const Arguments&) = delete;  // the pointers point into the strings
  Arguments& operator=(const Arguments&) = delete;

  [[nodiscard]] char* const* get() const { return pointers_.data(); }
  [[nodiscard]] const char* program() const { return pointers_.front(); }

 private:
  std::vector<std::string> arguments_;
  std::vector<char*> pointers_;
};

}  // namespace hf::kernel
