#include "services/demo/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace hf::demo {

Result<TemporaryDirectory> TemporaryDirectory::make() {
  std::string path = "/tmp/holdfast-demo-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return fail_errno(errno, "make a directory in /tmp");
  }
  return TemporaryDirectory(path);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) {
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace hf::demo
