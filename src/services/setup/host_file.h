// HostFile: a config file of the host that is replaced as a whole and never left half written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "kernel/files/file.h"
#include "kernel/files/host.h"

namespace hf::setup {

class HostFile {
 public:
  using Content = std::optional<kernel::PlainFile>;  // absent: there is no such file

  HostFile(const kernel::Host& host, std::string path) : host_(host), path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Result<Content> read() const;
  // Replaces the content that was read and keeps mode and owner; fails if the file was changed since it was read.
  [[nodiscard]] Result<void> write(const Content& read, std::string_view text) const;
  // Replaces any existing file with this one, including mode and owner.
  [[nodiscard]] Result<void> write_copy(const kernel::PlainFile& file) const;
  [[nodiscard]] Result<void> remove(const Content& read) const;

 private:
  [[nodiscard]] Result<void> check_unchanged(const Content& read) const;

  const kernel::Host& host_;
  std::string path_;
};

}  // namespace hf::setup
