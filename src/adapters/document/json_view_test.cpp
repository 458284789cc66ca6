#include "adapters/document/json_view.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::document {
namespace {

TEST(JsonView, ReadsValuesByTheirKeys) {
  const std::string text =
      R"({"a": {"b": "x\ny", "b": "last"}, "list": ["one", 2, "thr\u0065e", null], "none": null, "\u006eumber": 7})";
  const JsonPlaces places = *JsonPlaces::read(text);
  const JsonView view(places);
  EXPECT_TRUE(view.is_object());
  EXPECT_EQ(view.at("a").at("b").string(), "last");
  EXPECT_EQ(view.at("list").strings(), (std::vector<std::string>{"one", "three"}));
  EXPECT_EQ(view.at("list").elements().size(), 4U);
  EXPECT_TRUE(view.at("none").is_nothing());
  EXPECT_EQ(view.at("number").text(), "7");
  EXPECT_EQ(view.at("number").tree(), 7);
  std::vector<std::string> keys;
  for (const auto& [key, value] : view.members()) {
    keys.push_back(key);
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "list", "none", "number"}));
}

TEST(JsonView, OfSomethingElseIsEmpty) {
  const std::string text = R"(["x"])";
  const JsonPlaces places = *JsonPlaces::read(text);
  const JsonView view(places);
  EXPECT_TRUE(view.at("x").is_nothing());
  EXPECT_TRUE(view.at("x").at("y").elements().empty());
  EXPECT_TRUE(view.members().empty());
  EXPECT_EQ(view.string(), std::nullopt);
  EXPECT_EQ(view.at("x").text(), "");
  EXPECT_TRUE(view.at("x").tree().is_null());
}

TEST(JsonView, RefusesStringsThatAreNoJson) {
  const std::string text = "[\"\\x\", \"\xff\", \"a\tb\", \"\xc3\xa4\"]";
  const JsonPlaces places = *JsonPlaces::read(text);
  EXPECT_EQ(JsonView(places).strings(), std::vector<std::string>{"\xc3\xa4"});
}

}  // namespace
}  // namespace hf::document
