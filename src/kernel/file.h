// File: small kernel files, read whole and written in one call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

Result<Fd> open_directory(int directory, const std::string& path);
// A link in its place is refused, and so is a way through another process's eyes (/proc/PID/root and the like).
Result<Fd> open_plain_directory(int directory, const std::string& path);
// At most 16 MiB: a file of /proc can be as long as an unprivileged process likes.
Result<std::string> read_text(int directory, const std::string& path);
// The first bytes of it, `most` at the most.
Result<std::string> read_start(int directory, const std::string& path, std::size_t most);
Result<std::string> read_input();  // standard input, to its end
// A file a person names: an ordinary one, of at most 64 MiB.
Result<std::string> read_regular_file(const std::string& path);

// A file that only root can have written: an ordinary one of root's, that nobody else may write, of at most 16 MiB. A
// link in its place is refused.
Result<std::string> read_trusted_file(int directory, const std::string& path);
// A folder in which nobody but root can put anything.
bool is_trusted_directory(int directory);

std::vector<std::string> list_names(int directory, const std::string& path);  // sorted; none where it cannot be read
// One by one, unsorted, until `visit` says false.
void visit_names(int directory, const std::string& path, const std::function<bool(std::string_view name)>& visit);
bool exists(int directory, const std::string& path);
// Another text when the file has become another or was written to; "" where there is none.
std::string stamp_of(int directory, const std::string& path);

// In the place of whatever file is there, if any: whoever reads it finds the old text or the new one. A link in its
// place is replaced, not followed.
struct FileOwner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
struct NewFile {
  std::string_view text;
  std::uint32_t mode = 0644;
  std::optional<FileOwner> owner = std::nullopt;  // absent: whoever makes it
  bool is_synced = false;                         // on the disk before it is in its place
};
Result<void> replace_file(int directory, const std::string& path, const NewFile& file);

// A file that somebody keeps for himself, with all that a new one in its place must have. Absent where there is none; a
// link in its place is refused, and so is a file above 16 MiB.
struct PlainFile {
  std::string text;
  std::uint32_t mode = 0644;
  std::optional<FileOwner> owner = std::nullopt;
};
Result<std::optional<PlainFile>> read_plain_file(int directory, const std::string& path);

// A second name for the same file; fails where that name is taken. What is put in its place later leaves this one be.
Result<void> name_again(int directory, const std::string& path, const std::string& name);

Result<void> make_folders(int directory, const std::string& path);  // that and those above it, where they are missing
Result<void> remove_file(int directory, const std::string& path);   // none there is fine

Result<void> write_text(int directory, const std::string& path, std::string_view text);  // one write(2), no creation

}  // namespace hf::kernel
