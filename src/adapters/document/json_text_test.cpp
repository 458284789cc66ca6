#include "adapters/document/json_text.h"

#include <gtest/gtest.h>

namespace hf::document {
namespace {

std::string added(const std::string& text, const NewMember& member) {
  const Result<JsonPlaces> places = read_object_places(text);
  return places ? with_member(*places, places->root(), member) : places.error().message;
}

std::string removed(const std::string& text, std::string_view key) {
  const Result<JsonPlaces> places = read_object_places(text);
  return without_member(*places, places->root(), **places->member(places->root(), key));
}

TEST(JsonText, AddsAMemberInTheLayoutOfTheText) {
  EXPECT_EQ(added("{}", {"k", "1"}), "{\n    \"k\": 1\n}");
  EXPECT_EQ(added(R"({"a":1})", {"k", "1"}), R"({"k":1, "a":1})");
  EXPECT_EQ(added("{\r\n\t\"a\" : 1\r\n}", {"k", "1"}), "{\r\n\t\"k\" : 1,\r\n\t\"a\" : 1\r\n}");
  EXPECT_EQ(added(R"({"a":1,  "b":2})", {"k\"", "1"}), R"({"k\"":1,  "a":1,  "b":2})");
}

TEST(JsonText, SkipsAByteOrderMark) {
  EXPECT_EQ(added("\xef\xbb\xbf{\"a\":1}", {"k", "1"}), "\xef\xbb\xbf{\"k\":1, \"a\":1}");
}

TEST(JsonText, WantsAnObject) {
  EXPECT_EQ(added("\n [1]", {"k", "1"}), "line 2, column 2: want an object in braces");
  EXPECT_EQ(added("", {"k", "1"}), "line 1, column 1: want an object in braces");
}

TEST(JsonText, ReplacesAValue) {
  const std::string text = R"({"a": [1] , "b":2})";
  const Result<JsonPlaces> places = read_object_places(text);
  EXPECT_EQ(with_value(*places, **places->member(places->root(), "a"), "{}"), R"({"a": {} , "b":2})");
}

TEST(JsonText, RemovesAMemberWithItsComma) {
  const std::string text = "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}";
  EXPECT_EQ(removed(text, "a"), "{\n  \"b\": 2,\n  \"c\": 3\n}");
  EXPECT_EQ(removed(text, "b"), "{\n  \"a\": 1,\n  \"c\": 3\n}");
  EXPECT_EQ(removed(text, "c"), "{\n  \"a\": 1,\n  \"b\": 2\n}");
  EXPECT_EQ(removed("{ \"a\": 1 }", "a"), "{}");
}

TEST(JsonText, NestsAnObjectOverSeveralLinesOrOnOne) {
  EXPECT_EQ(nest({"\n", "  ", ": "}, 1, "k", "1"), "{\n    \"k\": 1\n  }");
  EXPECT_EQ(nest({"", "", ":"}, 1, "k", "1"), R"({"k":1})");
}

}  // namespace
}  // namespace hf::document
