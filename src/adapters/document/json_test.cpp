#include "adapters/document/json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::document {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string error_of(std::string_view text, const Limits& limits = {}) {
  const Result<Json> json = parse_json(text, limits);
  return json ? "" : json.error().message;
}

TEST(ParseJson, NamesThePositionOfAnError) {
  EXPECT_EQ(error_of(""), "line 1, column 1: this is no JSON");
  EXPECT_EQ(error_of("{\n  \"a\": tru\n}"), "line 2, column 11: this is no JSON");
  EXPECT_EQ(error_of("{} {}"), "line 1, column 4: this is no JSON");
  EXPECT_EQ(error_of("[\"\xff\"]"), "line 1, column 3: this is no JSON");
  EXPECT_EQ(error_of("[1e999]"), "it has a number that is out of range");
}

TEST(ParseJson, TakesTheLastOfTwoMembersWithTheSameKey) {
  const char* text = R"({"a": 1, "b": 2, "a": 3})";
  EXPECT_EQ(render_json(*parse_json(text)), R"({"a":3,"b":2})");
  EXPECT_EQ(render_json(*parse_json<OrderedJson>(text)), R"({"a":3,"b":2})");
}

TEST(ParseJson, KeepsTheOrderOfKeysWhereItIsAskedTo) {
  EXPECT_EQ(render_json(*parse_json<OrderedJson>(R"({"b":1,"a":2})")), R"({"b":1,"a":2})");
  EXPECT_EQ(render_json(*parse_json(R"({"b":1,"a":2})")), R"({"a":2,"b":1})");
}

TEST(ParseJson, RefusesATextBeyondItsLimits) {
  EXPECT_EQ(error_of("[10]", {.bytes = 4}), "");
  EXPECT_EQ(error_of("[100]", {.bytes = 4}), "it is longer than 4 bytes");
  EXPECT_EQ(error_of(nested(3), {.depth = 3}), "");
  EXPECT_EQ(error_of(nested(4), {.depth = 3}), "it is nested too deep");
  EXPECT_EQ(error_of(std::string(1'000'000, '['), {.depth = 3}), "it is nested too deep");
  EXPECT_EQ(error_of(R"({"a[[[[": "[[[[\"[["})", {.depth = 1}), "");
  EXPECT_EQ(parse_json(nested(4), {.depth = 3}).error().code, std::errc::value_too_large);
  EXPECT_EQ(parse_json("[", {.depth = 3}).error().code, std::errc::invalid_argument);
}

TEST(ParseJson, ReadsAnyDepthWithoutRecursionWhereThereIsNoLimit) {
  EXPECT_EQ(error_of(nested(50'000)), "");
  EXPECT_TRUE(is_json(nested(50'000)));
  EXPECT_NE(error_of(std::string(50'000, '[')), "");
}

TEST(ParseJson, DropsDeepValuesWhereItIsAskedTo) {
  const Limits limits = {.depth = 3, .deeper = Deeper::dropped};
  const Result<Json> json = parse_json(R"({"a":{"b":1},"c":)" + nested(50'000) + "}", limits);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(render_json(*json), R"({"a":{"b":1},"c":[[]]})");
  EXPECT_FALSE(parse_json("{", limits));
}

TEST(ParseObject, NamesWhatIsNoObject) {
  EXPECT_EQ(parse_object("[]", "status").error().message, "parse status: not a JSON object");
  EXPECT_EQ(parse_object("{", "status").error().message, "parse status: line 1, column 2: this is no JSON");
  EXPECT_TRUE(parse_object(" {} ", "status"));
}

TEST(FindJsonFault, TellsACharacterFromTheEndAndFromANumber) {
  EXPECT_EQ(find_json_fault("[1]"), std::nullopt);
  EXPECT_EQ(find_json_fault("[x]")->offset, 1U);
  EXPECT_EQ(find_json_fault("[1")->offset, 2U);
  EXPECT_EQ(find_json_fault("[1e999]")->kind, JsonFault::Kind::number_out_of_range);
}

TEST(WriteJson, MakesValidUtf8) {
  EXPECT_EQ(render_json(Json("\xff")), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(render_json(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

const char* const kDocument =
    R"({"text":"t\u0041\n","number":7,"big":18446744073709551615,"over":18446744073709551616,"minus":-1,"half":0.5,
        "yes":true,"null":null,"list":["a",1,null,"b"],"map":{"k":"v","n":1},"":{"":"empty"},"minus zero":-0})";

TEST(LenientAccess, ReadsValuesOfTheRightType) {
  const Json json = *parse_json(kDocument);
  EXPECT_EQ(string_at(json, "text"), "tA\n");
  EXPECT_EQ(uint_at(json, "number"), 7U);
  EXPECT_EQ(uint_at(json, "big"), 18446744073709551615U);
  EXPECT_EQ(bool_at(json, "yes"), true);
  EXPECT_EQ(strings_at(json, "list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(string_map_at(json, "map"), (std::map<std::string, std::string>{{"k", "v"}, {"n", ""}}));
  EXPECT_EQ(string_at(object_at(json, ""), ""), "empty");
  EXPECT_EQ(array_at(json, "list").size(), 4U);
}

TEST(LenientAccess, IsAbsentWhereAValueIsMissingOrOfAnotherType) {
  const Json json = *parse_json(kDocument);
  for (const char* key : {"number", "list", "map", "null", "none"}) {
    EXPECT_EQ(string_at(json, key), std::nullopt) << key;
    EXPECT_EQ(bool_at(json, key), std::nullopt) << key;
  }
  for (const char* key : {"text", "over", "minus", "half", "yes", "null", "none"}) {
    EXPECT_EQ(uint_at(json, key), std::nullopt) << key;
    EXPECT_TRUE(object_at(json, key).empty()) << key;
    EXPECT_TRUE(array_at(json, key).is_array()) << key;
    EXPECT_TRUE(strings_at(json, key).empty()) << key;
    EXPECT_TRUE(string_map_at(json, key).empty()) << key;
  }
  EXPECT_EQ(uint_at(json, "number", 6), std::nullopt);
  EXPECT_EQ(value_at(json, "null"), nullptr);
  for (const char* text : {"[1]", "\"text\"", "7", "null"}) {
    EXPECT_EQ(value_at(*parse_json(text), "text"), nullptr) << text;
  }
}

TEST(StrictAccess, NamesTheDocumentAndThePathOfTheKey) {
  const Json json = *parse_json(kDocument);
  const Where where{"file", "a.b[3]"};
  EXPECT_EQ(*require_string(json, "text", where), "tA\n");
  EXPECT_EQ(*require_uint(json, "number", 7, where), 7U);
  EXPECT_EQ(*require_uint(json, "minus zero", 7, where), 0U);
  EXPECT_EQ(require_strings(*parse_json(R"({"a":["b"]})"), "a", where)->size(), 1U);
  EXPECT_EQ(require_string(json, "number", where).error().message, "file: a.b[3].number is not a text");
  EXPECT_EQ(require_string(json, "none", {"file"}).error().message, "file: none is not a text");
  EXPECT_EQ(require_strings(json, "list", where).error().message, "file: a.b[3].list is not a list of texts");
  for (const char* key : {"number", "over", "minus", "half", "text", "null", "none"}) {
    const Result<std::uint64_t> number = require_uint(json, key, 6, where);
    ASSERT_FALSE(number) << key;
    EXPECT_EQ(number.error().message, std::string("file: a.b[3].") + key + " is not a number from 0 to 6");
  }
}

}  // namespace
}  // namespace hf::document
