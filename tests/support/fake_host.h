// FakeHost: the root directory of a host in a temporary directory, built from a table of files.
#pragma once

#include <map>
#include <string>

#include "kernel/files/host.h"

namespace hf::test {

using Files = std::map<std::string, std::string>;  // path and text

class FakeHost {
 public:
  explicit FakeHost(const Files& files);  // a path that ends in / is a directory
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  ~FakeHost();

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] kernel::Host open() const;  // throws if it cannot be opened

 private:
  std::string root_;
};

}  // namespace hf::test
