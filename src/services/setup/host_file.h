// HostFile: a config file of the host that is changed as a whole, and never left half written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "kernel/file.h"
#include "kernel/host.h"

namespace hf::setup {

class HostFile {
 public:
  using Content = std::optional<kernel::PlainFile>;  // absent: there is no such file

  HostFile(const kernel::Host& host, std::string path) : host_(host), path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Result<Content> read() const;
  // In the place of what was read, with its mode and its owner; fails where somebody else was faster. Read again.
  [[nodiscard]] Result<void> write(const Content& read, std::string_view text) const;
  // In the place of whatever is there, as it is: mode and owner too.
  [[nodiscard]] Result<void> write_copy(const kernel::PlainFile& file) const;
  [[nodiscard]] Result<void> remove(const Content& read) const;

 private:
  [[nodiscard]] Result<void> check_unchanged(const Content& read) const;
  [[nodiscard]] std::unexpected<Error> named(Error error) const;

  const kernel::Host& host_;
  std::string path_;
};

}  // namespace hf::setup
