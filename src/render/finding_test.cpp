#include "render/finding.h"

#include <gtest/gtest.h>

namespace hf::report {
namespace {

bool has(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

TEST(HtmlPageOf, HasTheTextOfTheDocumentation) {
  const std::string page = html_page_of("HF-101");
  EXPECT_TRUE(has(page, "<h1>HF-101 A container lost a right it had</h1>")) << page;
  EXPECT_TRUE(has(page, "<code>systemctl set-property --runtime UNIT DeviceAllow=…</code>")) << page;
  EXPECT_TRUE(has(page, "<p class=\"cure-text\">Cure: under systemd")) << page;
}

TEST(HtmlPageOf, LinksOtherPagesAndNotItself) {
  const std::string page = html_page_of("HF-102");
  EXPECT_TRUE(has(page, "<a href=\"/findings/HF-312\">HF-312</a>")) << page;
  EXPECT_FALSE(has(page, "<a href=\"/findings/HF-102\">")) << page;
}

TEST(HtmlPageOf, EscapesMarkup) {
  EXPECT_TRUE(has(html_page_of("HF-120"), "minor 0 for &quot;any&quot;")) << html_page_of("HF-120");
  for (const std::string& code : codes_with_pages()) {
    const std::string page = html_page_of(code);
    EXPECT_FALSE(has(page, "`")) << code;
    EXPECT_FALSE(has(page, "<p></p>")) << code;
  }
  EXPECT_EQ(html_page_of("HF-999"), "");
  EXPECT_EQ(html_page_of("<script>"), "");
}

TEST(HtmlListOfPages, HasEveryCode) {
  const std::string page = html_list_of_pages();
  for (const std::string& code : codes_with_pages()) {
    EXPECT_TRUE(has(page, "\"/findings/" + code + "\"")) << code;
  }
}

}  // namespace
}  // namespace hf::report
