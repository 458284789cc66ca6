#include "adapters/document/toml.h"

#include <gtest/gtest.h>

namespace hf::document {
namespace {

TEST(Toml, AllowsNonAsciiCharactersInStringsAndCommentsOnly) {
  for (const char* text :
       {"", "a = 1\n", "# \u00e9\na = \"\u00e9\"\n", "a = '\u00e9'",
        "\xef\xbb\xbf"
        "a = 1",
        "a = \"\"\"\n\u00e9 \" \\\" \n\"\"\" # \u00e9", "a = '''\n\u00e9 ' \n'''", "a = \"\\\"\u00e9\""}) {
    EXPECT_FALSE(find_invalid_toml(text)) << text;
  }
  EXPECT_EQ(find_invalid_toml("a = 2*\u028d\n"), 6U);
  EXPECT_EQ(find_invalid_toml("a = \"open\n\u00e9"), 10U);
  EXPECT_EQ(find_invalid_toml("a = ''\u00e9"), 6U);
  EXPECT_TRUE(find_invalid_toml("\u00e9 = 1"));
  EXPECT_EQ(find_invalid_toml("a = 2*c'rvD\u028dio]\n"), 7U);
  for (const char* text : {"a = 1'\u00e9'", "a = '' '\u00e9'", "a'\u00e9' = 1", "a = 1.'\u00e9'", "[a]'\u00e9'"}) {
    EXPECT_TRUE(find_invalid_toml(text)) << text;
  }
  EXPECT_FALSE(find_invalid_toml(
      "'\u00e9' = {'\u00e9' = '\u00e9', \"b\".'\u00e9'=\"\"}\r\n ['\u00e9'.\"c\"]\nd = [ '\u00e9',\n'' ]\n"));
}

TEST(Toml, RequiresAValueForEveryKey) {
  for (const char* text : {"a =", "a = \n", "a = ,", "a = {b = }", "a = ]", "a = # 1", "a = [\n }", "a = [,]",
                           "a = [1,,2]", "a = {b = 1,}", "a\v= 1"}) {
    EXPECT_TRUE(find_invalid_toml(text)) << text;
  }
  EXPECT_FALSE(find_invalid_toml(
      "a = {b = 1, c = 2}\nc = [\n]\nd = [1, # one\n 2,\n]\n'=' = '='\n# =\ne = {}\n[[x]]\n[y.z]\r\n"));
}

TEST(Toml, RequiresANameInEveryTableHeader) {
  for (const char* text : {"[", "[[", "[]", "[ ]", "[[ ]]", "[{}]", "a = 1\n[\x02]"}) {
    EXPECT_TRUE(find_nameless_header(text)) << text;
    EXPECT_FALSE(parse_toml(text)) << text;
    EXPECT_NE(explain_no_toml(text), "") << text;
  }
  EXPECT_NE(explain_no_toml("[]").find("blank"), std::string::npos) << explain_no_toml("[]");
  EXPECT_FALSE(find_nameless_header("[a]\n[ \"\" ]\n['b'.c]\n[[d]]\n"));
}

TEST(Toml, ReportsAnUnclosedStringOnItsLine) {
  const Result<TomlValues> values = parse_toml("a = 1\nb = \"open\n[]\n");
  ASSERT_FALSE(values);
  EXPECT_TRUE(values.error().message.starts_with("line 2, ")) << values.error().message;
}

TEST(Toml, RefusesNestingThatOverflowsTheStack) {
  std::string path = "a";
  for (int i = 0; i < 50'000; ++i) {
    path += ".a";
  }
  for (const std::string& text : {"[" + path + "]\n", path + " = 1\n", "x = {" + path + " = 1}\n",
                                  "x = " + std::string(50'000, '['), "x = " + std::string(50'000, '{')}) {
    EXPECT_FALSE(parse_toml(text)) << text.substr(0, 20);
  }
  EXPECT_TRUE(parse_toml("[" + path.substr(0, 399) + "]\nb = 1.5\n"));
}

TEST(Toml, ReadsStringsOfAllFourKinds) {
  const Result<TomlValues> values = parse_toml(R"(a = "\b\t\n\f\r\"\\ \u00e9\u20ac\U0001F600"
b = 'C:\n "'
c = """
first\
   second "quoted""""
d = '''
it's \n'''
e = ''
f = "é"
)");
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(string_at(*values, {"a"}), "\b\t\n\f\r\"\\ \u00e9\u20ac\U0001F600");
  EXPECT_EQ(string_at(*values, {"b"}), "C:\\n \"");
  EXPECT_EQ(string_at(*values, {"c"}), "firstsecond \"quoted\"");
  EXPECT_EQ(string_at(*values, {"d"}), "it's \\n");
  EXPECT_EQ(string_at(*values, {"e"}), "");
  EXPECT_EQ(string_at(*values, {"f"}), "\u00e9");
}

TEST(Toml, IsAbsentWhereAValueIsMissingOrOfAnotherType) {
  const Result<TomlValues> values = parse_toml(
      "yes = true\nno = false\none = 0x1\nminus = -3\nzero = 0\nhalf = 0.5\nday = 1979-05-27\n"
      "text = \"true\"\nlist = [\"a\"]\n[table]\nkey = {inner = 7}\n");
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(bool_at(*values, {"yes"}), true);
  EXPECT_EQ(bool_at(*values, {"no"}), false);
  EXPECT_EQ(bool_at(*values, {"one"}), true);
  EXPECT_EQ(bool_at(*values, {"minus"}), true);
  EXPECT_EQ(bool_at(*values, {"zero"}), false);
  EXPECT_EQ(bool_at(*values, {"table", "key", "inner"}), true);
  for (const char* key : {"half", "day", "text", "list", "table", "none"}) {
    EXPECT_EQ(bool_at(*values, {key}), std::nullopt) << key;
  }
  for (const char* key : {"yes", "one", "day", "list", "table", "none"}) {
    EXPECT_EQ(string_at(*values, {key}), std::nullopt) << key;
  }
}

TEST(Toml, RefusesDuplicateKeysInvalidUtf8AndNumbersOutOfRange) {
  for (const char* text : {"a = 1\na = 2\n", "[t]\n[t]\n", "a = \"\xff\"\n", "a = 9223372036854775808\n"}) {
    EXPECT_FALSE(parse_toml(text)) << text;
    EXPECT_NE(explain_no_toml(text), "") << text;
  }
  EXPECT_EQ(explain_no_toml("a = 1\n"), "");
}

}  // namespace
}  // namespace hf::document
