// File: small kernel files, read whole and written in one call.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

Result<Fd> open_directory(int directory, const std::string& path);
Result<std::string> read_text(int directory, const std::string& path);
// A file a person names: an ordinary one, of at most 64 MiB.
Result<std::string> read_regular_file(const std::string& path);

Result<void> write_text(int directory, const std::string& path, std::string_view text);  // one write(2), no creation

}  // namespace hf::kernel
