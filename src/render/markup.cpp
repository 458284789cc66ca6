#include "render/markup.h"

namespace hf::report {

std::string escaped_markup(std::string_view text) {
  std::string safe;
  for (const char character : text) {
    switch (character) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += character;
    }
  }
  return safe;
}

}  // namespace hf::report
