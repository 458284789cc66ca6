// File: small kernel files, read whole and written in one call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

Result<Fd> open_directory(int directory, const std::string& path);
// Fails where the last component is a symlink, and where the path contains a magic link (/proc/PID/root and the like).
Result<Fd> open_plain_directory(int directory, const std::string& path);
// Reads at most 16 MiB, because an unprivileged process can make a file of /proc arbitrarily long.
Result<std::string> read_text(int directory, const std::string& path);
// The first bytes of a file, at most `most`.
Result<std::string> read_start(int directory, const std::string& path, std::size_t most);
Result<std::string> read_input();  // standard input, to its end
// Reads a file that a user has named. It must be a regular file of at most 64 MiB.
Result<std::string> read_regular_file(const std::string& path);

// Reads a file that only root can have written: a regular file that root owns and no other user may write, of at most
// 16 MiB. Fails where it is a symlink.
Result<std::string> read_trusted_file(int directory, const std::string& path);
// A directory that only root can write to.
bool is_trusted_directory(int directory);

std::vector<std::string> list_names(int directory, const std::string& path);  // sorted; empty if it cannot be read
// Visits the names one by one, unsorted, until `visit` returns false.
void visit_names(int directory, const std::string& path, const std::function<bool(std::string_view name)>& visit);
bool exists(int directory, const std::string& path);
// A text that changes when the file is replaced or written to; "" where there is no such file.
std::string stamp_of(int directory, const std::string& path);

// Creates or replaces a file atomically: readers find the old text or the new one. A symlink is replaced, not followed.
struct FileOwner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
struct NewFile {
  std::string_view text;
  std::uint32_t mode = 0644;
  std::optional<FileOwner> owner = std::nullopt;  // absent: the user of this process
  bool is_synced = false;                         // the text is on disk before the file is renamed to its path
};
Result<void> replace_file(int directory, const std::string& path, const NewFile& file);

// A configuration file of the administrator, with the attributes that its replacement must have. Absent where there is
// no such file. Fails where it is a symlink or larger than 16 MiB.
struct PlainFile {
  std::string text;
  std::uint32_t mode = 0644;
  std::optional<FileOwner> owner = std::nullopt;
};
Result<std::optional<PlainFile>> read_plain_file(int directory, const std::string& path);

// Creates a hard link; fails where that name exists. It keeps the content when the file is replaced later.
Result<void> create_hard_link(int directory, const std::string& path, const std::string& name);

Result<void> make_directories(int directory, const std::string& path);  // with its parents, where they are missing
Result<void> remove_file(int directory, const std::string& path);       // succeeds where there is no such file

Result<void> write_text(int directory, const std::string& path, std::string_view text);  // one write(2), no creation

}  // namespace hf::kernel
