#include "adapters/document/toml_text.h"

#include <gtest/gtest.h>

namespace hf::document {
namespace {

TEST(ScanToml, FindsTheStatementsAroundStringsOfEveryKind) {
  const std::string text =
      "a = \"x # \\\" [t]\" # c\nb = 'y \\' # c\nc = \"\"\"\n[no]\n\\\"\"\"\"\"\nd = '''\n[no]\n''''\n"
      "e = [ \"]\", # ]\n  2 ]\n[t.'u.v'.\"w\"]\nf = {g = '}'}\n";
  const std::vector<std::pair<TomlPath, std::string>> expected = {
      {{"a"}, "\"x # \\\" [t]\""},           {{"b"}, "'y \\'"},
      {{"c"}, "\"\"\"\n[no]\n\\\"\"\"\"\""}, {{"d"}, "'''\n[no]\n''''"},
      {{"e"}, "[ \"]\", # ]\n  2 ]"},        {{"t", "u.v", "w"}, ""},
      {{"t", "u.v", "w", "f"}, "{g = '}'}"}};
  ASSERT_TRUE(parse_toml(text)) << parse_toml(text).error().message;
  const std::vector<TomlStatement> statements = scan_toml(text);
  ASSERT_EQ(statements.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TomlStatement& statement = statements[i];
    EXPECT_EQ(statement.path, expected[i].first);
    EXPECT_EQ(text.substr(statement.value, statement.value_end - statement.value), expected[i].second);
  }
}

TEST(TomlText, ChangesOneValueAndKeepsEveryOtherByte) {
  const std::string text = "# c\n[t]\n  a = 'x'  # why\n\n[u]\n";
  EXPECT_EQ(with_value(text, {"t", "a"}, "7"), "# c\n[t]\n  a = 7  # why\n\n[u]\n");
  EXPECT_EQ(with_value(text, {"t", "b"}, "7"), "# c\n[t]\n  b = 7\n  a = 'x'  # why\n\n[u]\n");
  EXPECT_EQ(value_in(text, {"t", "a"}), "'x'");
  EXPECT_EQ(value_in(text, {"a"}), std::nullopt);
}

TEST(TomlText, AddsATableAndRemovesItAgain) {
  const std::string text = "[t.a]\r\n  x = 1\r\n";
  const std::string added = with_table(text, {"t", "b.c"}, {{{"t", "b.c", "y"}, "2"}});
  EXPECT_EQ(added, "[t.a]\r\n  x = 1\r\n\r\n[t.\"b.c\"]\r\n  y = 2\r\n");
  EXPECT_TRUE(has_header(added, {"t", "b.c"}));
  EXPECT_EQ(without(added, {"t", "b.c"}), text);
  EXPECT_EQ(without_empty_table("a = 1\n\n[t]\n", {"t"}), "a = 1\n");
  EXPECT_EQ(without_empty_table("[t]\na = 1\n", {"t"}), "[t]\na = 1\n");
}

}  // namespace
}  // namespace hf::document
