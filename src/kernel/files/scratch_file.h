// ScratchFile: texts on disk that need not stay in memory. The file has no name and ends with the process.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

class ScratchFile {
 public:
  struct Place {
    off_t offset = 0;
    std::size_t size = 0;
  };

  static Result<ScratchFile> open();  // in $TMPDIR or /tmp

  Result<Place> append(std::string_view text);
  [[nodiscard]] Result<std::string> read(const Place& place) const;

 private:
  explicit ScratchFile(Fd file) : file_(std::move(file)) {}

  Fd file_;
  off_t end_ = 0;
};

}  // namespace hf::kernel
