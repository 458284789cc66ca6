#include "services/setup/host_file.h"

namespace hf::setup {

// Errors of the kernel layer have paths relative to the root directory; users expect absolute paths.
std::unexpected<Error> HostFile::with_full_path(Error error) const {
  const std::string below = kernel::below_root(path_);
  if (const std::size_t at = error.message.find(below); at != std::string::npos) {
    error.message.replace(at, below.size(), path_);
  }
  return std::unexpected(std::move(error));
}

Result<HostFile::Content> HostFile::read() const {
  Result<Content> content = kernel::read_plain_file(host_.root.get(), kernel::below_root(path_));
  return content ? std::move(content) : with_full_path(content.error());
}

Result<void> HostFile::check_unchanged(const Content& read) const {
  const Content now = TRY(this->read());
  const bool is_same = now.has_value() == read.has_value() && (!now || now->text == read->text);
  return is_same ? Result<void>()
                 : fail(std::errc::resource_unavailable_try_again, "write " + path_ + ": it was changed meanwhile");
}

Result<void> HostFile::write(const Content& read, std::string_view text) const {
  constexpr std::uint32_t kMode = 0644;
  const std::string below = kernel::below_root(path_);
  TRY(check_unchanged(read));
  const std::size_t slash = below.rfind('/');
  if (!read && slash != std::string::npos) {
    const Result<void> created = kernel::make_directories(host_.root.get(), below.substr(0, slash));
    if (!created) {
      return fail(created.error().code, "write " + path_ + ": " + created.error().message);
    }
  }
  TRY(write_copy({std::string(text), read ? read->mode : kMode, read ? read->owner : std::nullopt}));
  const Content now = TRY(this->read());
  return now && now->text == text ? Result<void>()
                                  : fail(std::errc::io_error, "write " + path_ + ": it has other content now");
}

Result<void> HostFile::write_copy(const kernel::PlainFile& file) const {
  const kernel::NewFile replacement{file.text, file.mode, file.owner, true};
  const Result<void> written = kernel::replace_file(host_.root.get(), kernel::below_root(path_), replacement);
  return written ? written : with_full_path(written.error());
}

Result<void> HostFile::remove(const Content& read) const {
  TRY(check_unchanged(read));
  const Result<void> removed = kernel::remove_file(host_.root.get(), kernel::below_root(path_));
  return removed ? removed : with_full_path(removed.error());
}

}  // namespace hf::setup
