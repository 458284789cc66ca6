#include "core/device/access.h"

#include "core/base/text.h"

namespace hf::device {
namespace {

Access bit_of(char character) {
  switch (character) {
    case 'r': return Access::read;
    case 'w': return Access::write;
    case 'm': return Access::mknod;
    default: return Access::none;
  }
}

}  // namespace

Result<Access> parse_access(std::string_view text) {
  Access access = Access::none;
  for (const char character : text) {
    const Access bit = bit_of(character);
    if (bit == Access::none || contains(access, bit)) {
      return fail(std::errc::invalid_argument,
                  "parse access " + quote(text) + ": want a combination of r, w and m, none twice");
    }
    access = access | bit;
  }
  return access;
}

std::string to_string(Access access) {
  std::string text;
  for (const char character : {'r', 'w', 'm'}) {
    if (contains(access, bit_of(character))) {
      text += character;
    }
  }
  return text;
}

}  // namespace hf::device
