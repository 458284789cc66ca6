#include "adapters/document/yaml.h"

#include <gtest/gtest.h>

namespace hf::document {
namespace {

YamlDocument parse(std::string_view text) {
  Result<YamlDocument> document = YamlDocument::parse(text);
  if (!document) {
    throw std::runtime_error(document.error().message);
  }
  return *std::move(document);
}

std::string error_of(std::string_view text) {
  const Result<YamlDocument> document = YamlDocument::parse(text);
  return document ? "" : document.error().message;
}

// As a flow style that names every kind.
std::string shown(Yaml value) {
  std::string text;
  if (value.is_list()) {
    for (const Yaml element : value.elements()) {
      text += (text.empty() ? "" : " ") + shown(element);
    }
    return "[" + text + "]";
  }
  if (value.is_map()) {
    for (const auto& [key, member] : value.members()) {
      text += (text.empty() ? "" : " ") + shown(key) + ":" + shown(member);
    }
    return "{" + text + "}";
  }
  return value.is_null() ? "null" : value ? "'" + value.scalar() + "'" : "nothing";
}

TEST(Yaml, ReadsBlocksAndFlowsAlike) {
  EXPECT_EQ(shown(parse("a:\n- 1\n- {b: c, d: [e, 'f g']}\n- \"x\\ty\"\nh: |\n  i\n  j\n").root()),
            "{'a':['1' {'b':'c' 'd':['e' 'f g']} 'x\ty'] 'h':'i\nj\n'}");
  EXPECT_EQ(shown(parse("# only a comment\n").root()), "nothing");
  EXPECT_EQ(shown(parse("").root()), "nothing");
  EXPECT_EQ(shown(parse("--- a\n--- b\n").root()), "'a'") << "the first document";
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(shown(parse(mark + "a: ü\nb: c\n").root()), "{'a':'ü' 'b':'c'}");
  EXPECT_EQ(shown(parse(mark + "---\n- a\n- b\n").root()), "['a' 'b']");
  EXPECT_EQ(shown(parse("a: b\r\nc: d\r\n...\r\n").root()), "{'a':'b' 'c':'d'}");
}

TEST(Yaml, TellsNullFromText) {
  EXPECT_EQ(shown(parse("[~, null, Null, NULL, '', \"null\", nULL, !!str ~, '~']").root()),
            "[null null null null '' 'null' 'nULL' '~' '~']");
  EXPECT_EQ(shown(parse("{a: , b: ~, c}").root()), "{'a':null 'b':null 'c':null}");
  EXPECT_EQ(shown(parse("!tag").root()), "null");
}

TEST(Yaml, FindsMembersByKey) {
  const YamlDocument document = parse("{a: 1, b: {c: 2}, a: 3, [x]: 4}");
  const Yaml root = document.root();
  EXPECT_EQ(root["a"].scalar(), "1") << "the first of two";
  EXPECT_EQ(root["b"]["c"].scalar(), "2");
  EXPECT_FALSE(root["x"]);
  EXPECT_FALSE(root["a"]["b"]) << "no map";
  EXPECT_EQ(root["x"]["y"].scalar(), "");
  EXPECT_TRUE(root["x"].elements().empty());
  EXPECT_TRUE(root["x"].members().empty());
}

TEST(Yaml, StaysWhereItIsWhenItsDocumentMoves) {
  YamlDocument document = parse("{a: [b]}");
  const Yaml a = document.root()["a"];
  const YamlDocument moved = std::move(document);
  EXPECT_EQ(shown(a), "['b']");
  EXPECT_EQ(shown(moved.root()), "{'a':['b']}");
}

TEST(Yaml, RepeatsTheValueOfAnAnchor) {
  EXPECT_EQ(shown(parse("{a: &x [1], b: *x, c: &x 2, d: *x}").root()), "{'a':['1'] 'b':['1'] 'c':'2' 'd':'2'}");
  EXPECT_EQ(error_of("a: *b"), "line 1, column 4: no value before it has this anchor");
  EXPECT_NE(error_of("&a [*a]"), "") << "a list cannot contain itself";
}

TEST(Yaml, NamesTheLineThatIsNoYaml) {
  EXPECT_EQ(error_of("a: b\nc: [d\n"),
            "line 3, column 1: while parsing a flow sequence: did not find expected ',' or ']'");
  for (const char* text : {"a: b: c", "\t- x", "{", "'", "%YAML", "a\x01", "\xff", "\xff\xfe\x78"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
  EXPECT_TRUE(error_of("a: \x01").starts_with("byte 3: ")) << error_of("a: \x01");
}

TEST(Yaml, RefusesWhatStandsBehindADocument) {
  for (const char* text : {"{a: 1}}\nb: 2", "{a: b}\nc: d", "'x' y\nz: 1", " a:\n   b: c\nd: e", "[a] b"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Yaml, RefusesDeepNesting) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of(nested(64)), "");
  EXPECT_EQ(error_of(nested(65)), "line 1, column 65: nested too deep");
  EXPECT_NE(error_of(std::string(1'000'000, '[')), "");
  std::string blocks;
  for (int i = 0; i < 100'000; ++i) {
    blocks += "- ";
  }
  EXPECT_NE(error_of(blocks), "");
}

}  // namespace
}  // namespace hf::document
