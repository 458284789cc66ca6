// Svg: the pieces that pictures are made of. Colours are attributes, not a style sheet alone: the server's content
// security policy blocks style sheets in a picture that is opened by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hf::report {

// A piece of a picture, drawn from its own corner.
struct Picture {
  std::string body;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};
std::string to_string(Colour colour);  // "#4e79a7"
Colour owner_colour(std::size_t owner);
Colour text_colour_on(Colour ground);          // black or white, whichever is easier to read
double contrast(Colour first, Colour second);  // 1 to 21, as WCAG defines it

std::string escaped_for_xml(std::string_view text);
std::string svg_at(std::uint32_t x, std::uint32_t y, const std::string& body);
std::string svg_text(std::uint32_t x, std::uint32_t y, std::string_view text, std::string_view attributes = "");
std::string svg_tooltip(std::string_view text);
std::uint32_t text_width(std::string_view text);  // in pixels, rather too many than too few

// A box with a title, a tooltip and pieces in it, `columns` of them in a line.
struct Box {
  std::string title;
  std::string tooltip;
  std::string_view style;  // a class, and the attributes for it: see style_of()
  std::size_t columns = 1;
};
Picture svg_box(const Box& box, const std::vector<Picture>& pieces);
Picture svg_label(const Box& box);  // a small box with its title in the middle
std::string svg_document(const Picture& picture, std::string_view title);

}  // namespace hf::report
