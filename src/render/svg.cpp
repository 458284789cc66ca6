#include "render/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "render/markup.h"

namespace hf::report {
namespace {

constexpr std::uint32_t kGap = 6;
constexpr std::uint32_t kTitle = 18;
constexpr std::uint32_t kCharacter = 7;  // width, at 12 pixels
constexpr std::uint32_t kLabelHeight = 22;

struct Style {
  std::string_view name;
  std::string_view attributes;
};
constexpr std::array kStyles = {
    Style{"machine", R"(fill="#ffffff" stroke="#7b8794")"}, Style{"socket", R"(fill="#f3f5f8" stroke="#7b8794")"},
    Style{"node", R"(fill="#e7f0ec" stroke="#7b8794")"},    Style{"cache", R"(fill="#faf6ec" stroke="#b8a77a")"},
    Style{"device", R"(fill="#1f3d36" stroke="#1f3d36")"},
};
// For those who prefer dark pages, where the browser lets a style sheet overrule the attributes.
constexpr std::string_view kDark =
    "@media (prefers-color-scheme: dark) { text:not(.on) { fill: #e4e8eb } .machine { fill: #1c2024 } .socket { fill: "
    "#23282d } "
    ".node { fill: #1d2b27 } .cache { fill: #2a2720 } .free rect, rect.free { fill: #14171a } }";

std::string_view style_of(std::string_view name) {
  const auto* const found = std::ranges::find(kStyles, name, &Style::name);
  return found == kStyles.end() ? R"(fill="#ffffff" stroke="#7b8794")" : found->attributes;
}

std::string rectangle(const Box& box, std::uint32_t width, std::uint32_t height) {
  return "<rect class=\"" + std::string(box.style) + "\" " + std::string(style_of(box.style)) + R"( rx="3" width=")" +
         std::to_string(width) + "\" height=\"" + std::to_string(height) + "\">" +
         (box.tooltip.empty() ? "" : svg_tooltip(box.tooltip)) + "</rect>";
}

double linear(std::uint8_t part) {
  const double value = part / 255.0;
  return value <= 0.03928 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(Colour colour) {
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

// One part of a colour of this hue (0 to 1), at medium saturation and lightness.
std::uint8_t part_of_hue(double hue) {
  const double place = hue - std::floor(hue);
  const double value = std::clamp(std::abs(place * 6 - 3) - 1, 0.0, 1.0);
  return std::uint8_t(70 + std::lround(150 * value));
}

}  // namespace

std::string to_string(Colour colour) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t part : {colour.red, colour.green, colour.blue}) {
    text += kDigits[part >> 4U];
    text += kDigits[part & 15U];
  }
  return text;
}

// Ten that people tell apart, then as many hues as there are owners: a machine may have hundreds.
Colour owner_colour(std::size_t owner) {
  constexpr std::array kFirst = {
      Colour{78, 121, 167},  Colour{242, 142, 43}, Colour{89, 161, 79},  Colour{225, 87, 89},   Colour{176, 122, 161},
      Colour{118, 183, 178}, Colour{237, 201, 72}, Colour{156, 117, 95}, Colour{255, 157, 167}, Colour{186, 176, 172}};
  if (owner < kFirst.size()) {
    return kFirst[owner];
  }
  const double hue = double(owner) * 0.618033988749895;  // the golden ratio spreads them evenly
  return {part_of_hue(hue), part_of_hue(hue - 1.0 / 3), part_of_hue(hue - 2.0 / 3)};
}

double contrast(Colour first, Colour second) {
  const double one = luminance(first);
  const double other = luminance(second);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

Colour text_colour_on(Colour ground) {
  constexpr Colour kBlack{0, 0, 0};
  constexpr Colour kWhite{255, 255, 255};
  return contrast(ground, kBlack) >= contrast(ground, kWhite) ? kBlack : kWhite;
}

std::string escaped_for_xml(std::string_view text) {
  std::string printable(text);
  std::ranges::replace_if(printable, [](char character) { return std::uint8_t(character) < 0x20; }, '?');
  return as_utf8(escaped_markup(printable));
}

std::string svg_at(std::uint32_t x, std::uint32_t y, const std::string& body) {
  return "<g transform=\"translate(" + std::to_string(x) + "," + std::to_string(y) + ")\">" + body + "</g>\n";
}

std::string svg_text(std::uint32_t x, std::uint32_t y, std::string_view text, std::string_view attributes) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\"" + (attributes.empty() ? "" : " ") +
         std::string(attributes) + ">" + escaped_for_xml(text) + "</text>";
}

std::string svg_tooltip(std::string_view text) { return "<title>" + escaped_for_xml(text) + "</title>"; }

std::uint32_t text_width(std::string_view text) {
  const auto characters = std::ranges::count_if(text, [](char byte) { return (std::uint8_t(byte) & 0xC0U) != 0x80U; });
  return std::uint32_t(characters) * kCharacter;
}

Picture svg_box(const Box& box, const std::vector<Picture>& pieces) {
  Picture picture{.body = "", .width = 0, .height = kTitle};
  std::uint32_t x = kGap;
  std::uint32_t line = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && i % box.columns == 0) {
      picture.height += line + kGap;
      x = kGap;
      line = 0;
    }
    picture.body += svg_at(x, picture.height, pieces[i].body);
    x += pieces[i].width + kGap;
    line = std::max(line, pieces[i].height);
    picture.width = std::max(picture.width, x);
  }
  picture.height += line + kGap;
  picture.width = std::max(picture.width, text_width(box.title) + 2 * kGap);
  picture.body =
      rectangle(box, picture.width, picture.height) + svg_text(kGap, kTitle - 5, box.title) + "\n" + picture.body;
  return picture;
}

Picture svg_label(const Box& box) {
  const std::uint32_t width = text_width(box.title) + 2 * kGap;
  return {.body = rectangle(box, width, kLabelHeight) +
                  svg_text(kGap, 15, box.title, R"(class="on" fill="#ffffff" pointer-events="none")"),
          .width = width,
          .height = kLabelHeight};
}

std::string svg_document(const Picture& picture, std::string_view title) {
  const std::string width = std::to_string(picture.width);
  const std::string height = std::to_string(picture.height);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
         width + " " + height + "\" width=\"" + width + "\" height=\"" + height +
         "\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1c2126\">\n" +
         svg_tooltip(title) + "\n<style>" + std::string(kDark) + "</style>\n" + picture.body + "</svg>\n";
}

}  // namespace hf::report
