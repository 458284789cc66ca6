#include "adapters/document/text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/toml.h"

namespace hf::document {
namespace {

TEST(DocumentText, InQuotesIsReadBackByBothFormats) {
  using std::string_literals::operator""s;
  for (const std::string& text : {""s, "plain"s, "\"\\/"s, "\b\t\n\f\r\x01\x1f\x7f\0end"s, "\u00e9 \U0001F600"s}) {
    const std::string quoted = in_quotes(text);
    const Result<Json> json = parse_json(quoted);
    ASSERT_TRUE(json) << quoted;
    EXPECT_EQ(json->get<std::string>(), text);
    const Result<TomlValues> toml = parse_toml("a = " + quoted);
    ASSERT_TRUE(toml) << toml.error().message;
    EXPECT_EQ(string_at(*toml, {"a"}), text);
  }
}

TEST(DocumentText, InQuotesKeepsBytesThatAreNotUtf8) { EXPECT_EQ(in_quotes("\xff"), "\"\xff\""); }

TEST(DocumentText, NamesTheLineAndTheColumnOfAByte) {
  EXPECT_EQ(line_and_column("", 0), "line 1, column 1");
  EXPECT_EQ(line_and_column("ab\ncd", 4), "line 2, column 2");
  EXPECT_EQ(line_and_column("ab\n", 99), "line 2, column 1");
}

}  // namespace
}  // namespace hf::document
