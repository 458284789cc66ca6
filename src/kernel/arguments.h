// Arguments: words for execve(2), which wants pointers, none behind the last.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hf::kernel {

class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {
    pointers_.reserve(words_.size() + 1);
    for (std::string& word : words_) {
      pointers_.push_back(word.data());
    }
    pointers_.push_back(nullptr);
  }
  Arguments(const Arguments&) = delete;  // the pointers are into the words
  Arguments& operator=(const Arguments&) = delete;

  [[nodiscard]] char* const* get() const { return pointers_.data(); }
  [[nodiscard]] const char* program() const { return pointers_.front(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

}  // namespace hf::kernel
