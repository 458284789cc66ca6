// Libraries of images: the name lies inside the file, whatever its headers say.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "adapters/nvidia/library_identity.h"
#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const hf::kernel::Fd file(::memfd_create("library", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != ssize_t(size)) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::optional<hf::nvidia::LibraryIdentity> identity = hf::nvidia::read_library_identity(file);
  check(!identity || bytes.find(identity->name) != std::string_view::npos, "the name is from the file");
  return 0;
}
