#include "kernel/files/scratch_file.h"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace hf::kernel {

Result<ScratchFile> ScratchFile::open() {
  const char* const directory = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): no thread changes it
  std::string path = std::string(directory == nullptr || *directory == '\0' ? "/tmp" : directory) + "/holdfast-XXXXXX";
  Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) {
    return fail_errno(errno, "create " + path);
  }
  ::unlink(path.c_str());
  return ScratchFile(std::move(file));
}

Result<ScratchFile::Place> ScratchFile::append(std::string_view text) {
  const Place place{end_, text.size()};
  while (!text.empty()) {
    const ssize_t count = ::pwrite(file_.get(), text.data(), text.size(), end_);
    if (count < 0) {
      return fail_errno(errno, "write a temporary file");
    }
    end_ += count;
    text.remove_prefix(std::size_t(count));
  }
  return place;
}

Result<std::string> ScratchFile::read(const Place& place) const {
  std::string text(place.size, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::pread(file_.get(), text.data() + done, text.size() - done, place.offset + off_t(done));
    if (count <= 0) {
      return fail_errno(count == 0 ? EIO : errno, "read a temporary file");
    }
    done += std::size_t(count);
  }
  return text;
}

}  // namespace hf::kernel
