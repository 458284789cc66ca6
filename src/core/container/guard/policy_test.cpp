#include "core/container/guard/policy.h"

#include <gtest/gtest.h>

namespace hf::container {
namespace {

Container train() {
  Container container;
  container.id = {"4f1c0123456789ab"};
  container.name = "train-7";
  container.engine = "docker";
  container.labels = {{"team", "vision"}};
  container.pod = Pod{"uid", "train", "prod-eu", "main"};
  return container;
}

TEST(Policy, HealsByDefault) { EXPECT_EQ(mode_for({}, train(), "nvidia"), Mode::heal); }

TEST(Policy, AppliesTheFirstRuleWhoseFieldsAllMatch) {
  using SetFields = void (*)(Match&);
  const std::vector<std::pair<SetFields, bool>> cases = {
      {[](Match&) {}, true},
      {[](Match& match) { match.device_class = "nvidia"; }, true},
      {[](Match& match) { match.device_class = "amd"; }, false},
      {[](Match& match) { match.engine = "dock*"; }, true},
      {[](Match& match) { match.engine = "podman"; }, false},
      {[](Match& match) { match.name_space = "prod-*"; }, true},
      {[](Match& match) { match.name_space = "test-*"; }, false},
      {[](Match& match) { match.container = "train-?"; }, true},
      {[](Match& match) { match.container = "4f1c*"; }, true},
      {[](Match& match) { match.container = "other"; }, false},
      {[](Match& match) { match.labels = {{"team", "v*"}}; }, true},
      {[](Match& match) { match.labels = {{"team", "audio"}}; }, false},
      {[](Match& match) { match.labels = {{"other", "*"}}; }, false},
      {[](Match& match) {
         match.device_class = "nvidia";
         match.engine = "podman";
       },
       false},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Match match;
    cases[i].first(match);
    const Policy policy{Mode::heal, ShieldUse::automatic, {{match, Mode::observe}, {{}, Mode::lock}}, {}};
    EXPECT_EQ(mode_for(policy, train(), "nvidia"), cases[i].second ? Mode::observe : Mode::lock) << "case " << i;
  }
}

TEST(Policy, ModesAreParsedFromTheirNames) {
  for (const Mode mode : {Mode::observe, Mode::harden, Mode::heal, Mode::lock}) {
    EXPECT_EQ(*parse_mode(to_string(mode)), mode);
  }
  EXPECT_FALSE(parse_mode("Heal"));
  EXPECT_FALSE(parse_mode(""));
}

}  // namespace
}  // namespace hf::container
