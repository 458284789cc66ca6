#include "adapters/document/json_places.h"

#include <gtest/gtest.h>

namespace hf::document {
namespace {

using Kind = JsonPlaces::Kind;
using Place = JsonPlaces::Place;

std::vector<std::string> children_of(const JsonPlaces& places, const Place& place) {
  std::vector<std::string> texts;
  for (const Place* child : places.children(place)) {
    texts.emplace_back(places.text_of(*child));
  }
  return texts;
}

TEST(JsonPlaces, FindsEveryValueOfAText) {
  const std::string text = R"( {"a" : [1, "x,]\"" ,{}], "b":null} )";
  const Result<JsonPlaces> places = JsonPlaces::read(text);
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->root().kind, Kind::object);
  EXPECT_EQ(places->text_of(places->root()), R"({"a" : [1, "x,]\"" ,{}], "b":null})");
  const Place* list = *places->member(places->root(), "a");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(children_of(*places, *list), (std::vector<std::string>{"1", R"("x,]\"")", "{}"}));
  EXPECT_EQ(places->text_of(**places->member(places->root(), "b")), "null");
  EXPECT_EQ(*places->member(places->root(), "c"), nullptr);
}

TEST(JsonPlaces, ReadsKeysThatAreWrittenWithEscapes) {
  const Result<JsonPlaces> places = JsonPlaces::read(R"({"\u0061":1,"b\"c":2})");
  EXPECT_EQ(places->text_of(**places->member(places->root(), "a")), "1");
  EXPECT_EQ(places->text_of(**places->member(places->root(), "b\"c")), "2");
}

TEST(JsonPlaces, RefusesToChooseBetweenTwoMembersWithTheSameKey) {
  const Result<JsonPlaces> places = JsonPlaces::read(R"({"a":1,"\u0061":2})");
  EXPECT_EQ(places->members(places->root(), "a").size(), 2U);
  const Result<const Place*> member = places->member(places->root(), "a");
  ASSERT_FALSE(member);
  EXPECT_EQ(member.error().message, "it has \"a\" twice");
}

TEST(JsonPlaces, ReadsADeepTextWithoutRecursion) {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  EXPECT_TRUE(JsonPlaces::read(deep));
  EXPECT_FALSE(JsonPlaces::read(std::string(50'000, '[')));
}

TEST(JsonPlaces, RefusesATextThatIsClearlyNoJson) {
  for (const char* text : {"", " ", "{", "]", "{}]", "[] []", "\"open", "{1:2}", "{\"a\":\"b}"}) {
    EXPECT_FALSE(JsonPlaces::read(text)) << text;
  }
  EXPECT_EQ(JsonPlaces::read("[] 1").error().message, "not JSON at byte 3");
}

TEST(JsonPlaces, StayWhereTheyAreWhenTheyAreMoved) {
  Result<JsonPlaces> places = JsonPlaces::read("[1]");
  const Place* root = &places->root();
  const JsonPlaces moved = *std::move(places);
  EXPECT_EQ(&moved.root(), root);
}

TEST(Splices, ApplyInTheOrderOfTheText) {
  Splices splices;
  EXPECT_TRUE(splices.is_empty());
  splices.insert(3, "3");
  splices.replace(0, 1, "A");
  splices.insert(3, "4");
  EXPECT_EQ(splices.apply("abc"), "Abc34");
}

}  // namespace
}  // namespace hf::document
