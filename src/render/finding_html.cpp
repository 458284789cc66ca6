// The pages of findings for a browser. They come from docs/FINDINGS.md, which uses paragraphs and `code` only.
#include "core/base/text.h"
#include "render/finding.h"
#include "render/markup.h"

namespace hf::report {
namespace {

constexpr std::string_view kHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n<link rel=\"stylesheet\" href=\"/style.css\">\n";
constexpr std::string_view kTop =
    "</head>\n<body>\n<header class=\"top\"><a class=\"brand\" href=\"/\"><img src=\"/icon.svg\" alt=\"\" width=\"26\" "
    "height=\"26\"><span class=\"name\">holdfast</span></a>\n"
    "<nav aria-label=\"Pages\"><a href=\"/\">Status</a> <a href=\"/findings\">All findings</a></nav></header>\n"
    "<main><article class=\"card prose\">\n";
constexpr std::string_view kBottom = "</article></main>\n</body>\n</html>\n";
constexpr std::size_t kCodeLength = 6;  // of "HF-101"

std::string link_to(std::string_view code) {
  return "<a href=\"/findings/" + std::string(code) + "\">" + std::string(code) + "</a>";
}

// Codes become links. `own` is the page they are on.
std::string linked(std::string_view text, std::string_view own) {
  std::string html;
  while (!text.empty()) {
    const std::size_t at = text.find("HF-");
    const std::string_view code = at == std::string_view::npos ? "" : text.substr(at, kCodeLength);
    html += escaped_markup(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at);
    if (!code.empty()) {
      html += code == own || page_of(code).empty() ? escaped_markup(code) : link_to(code);
      text.remove_prefix(code.size());
    }
  }
  return html;
}

std::string paragraph(std::string_view text, std::string_view own) {
  std::string html = text.starts_with("Cure:") ? "<p class=\"cure-text\">" : "<p>";
  bool is_code = false;
  for (const std::string_view part : split(text, '`')) {
    html += is_code ? "<code>" + escaped_markup(part) + "</code>" : linked(part, own);
    is_code = !is_code;
  }
  return html + "</p>\n";
}

std::string document(const std::string& title, const std::string& body) {
  return std::string(kHead) + "<title>" + escaped_markup(title) + " · holdfast</title>\n" + std::string(kTop) + body +
         std::string(kBottom);
}

std::string title_in(std::string_view page) { return std::string(page.substr(0, page.find('\n'))); }

}  // namespace

std::string html_page_of(std::string_view code) {
  const std::string page = page_of(code);
  if (page.empty()) {
    return {};
  }
  const std::string title = title_in(page);
  std::string body = "<h1>" + escaped_markup(title) + "</h1>\n";
  std::string text;
  const auto finish = [&] {
    body += text.empty() ? "" : paragraph(text, code);
    text.clear();
  };
  for (const std::string_view line : split(std::string_view(page).substr(title.size()), '\n')) {
    if (line.empty() || line.starts_with("Cure:")) {
      finish();
    }
    text += (text.empty() || line.empty() ? "" : " ") + std::string(line);
  }
  finish();
  body += "<p class=\"quiet\">On the host: <code>holdfast doctor --explain " + escaped_markup(code) + "</code></p>\n";
  return document(title, body);
}

std::string html_list_of_pages() {
  std::string body = "<h1>Findings</h1>\n<ul>\n";
  for (const std::string& code : codes_with_pages()) {
    body += "<li>" + link_to(code) + escaped_markup(title_in(page_of(code)).substr(code.size())) + "</li>\n";
  }
  return document("Findings", body + "</ul>\n");
}

}  // namespace hf::report
