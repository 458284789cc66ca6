// FakeHost: a machine in a temporary folder, from a table of files.
#pragma once

#include <map>
#include <string>

#include "kernel/host.h"

namespace hf::test {

using Files = std::map<std::string, std::string>;  // path and text

class FakeHost {
 public:
  explicit FakeHost(const Files& files);  // a path that ends in / is a folder
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  ~FakeHost();

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] kernel::Host open() const;  // throws where it cannot be opened

 private:
  std::string root_;
};

}  // namespace hf::test
