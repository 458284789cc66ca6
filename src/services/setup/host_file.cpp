#include "services/setup/host_file.h"

namespace hf::setup {

Result<HostFile::Content> HostFile::read() const {
  return kernel::read_plain_file(host_.root.get(), kernel::below_root(path_));
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
  return kernel::replace_file(host_.root.get(), kernel::below_root(path_), replacement);
}

Result<void> HostFile::remove(const Content& read) const {
  TRY(check_unchanged(read));
  return kernel::remove_file(host_.root.get(), kernel::below_root(path_));
}

}  // namespace hf::setup
