#include "adapters/oci/command_line.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace hf::oci {
namespace {

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> all;
  for (const std::string_view word : split(line, ' ')) {
    all.emplace_back(word);
  }
  return all;
}

CommandLine parse(std::string_view line) { return parse_command_line(words(line)); }

TEST(CommandLine, ReadsWhatContainerdSays) {
  const CommandLine line = parse(
      "--root /run/containerd/runc/k8s.io --log /run/log.json --log-format json --systemd-cgroup create --bundle "
      "/run/b --pid-file /run/b/init.pid abc");
  EXPECT_EQ(line.verb, Verb::create);
  EXPECT_EQ(line.bundle, "/run/b");
  EXPECT_EQ(line.container, "abc");
  EXPECT_EQ(line.log, "/run/log.json");
  EXPECT_EQ(line.log_format, "json");
}

TEST(CommandLine, ReadsWhatConmonSays) {
  const CommandLine line =
      parse("--root=/run/runc --systemd-cgroup create -b /b --pid-file=/b/pidfile -f other.json abc");
  EXPECT_EQ(line.verb, Verb::create);
  EXPECT_EQ(line.bundle, "/b");
  EXPECT_EQ(line.config, "other.json");
  EXPECT_EQ(line.container, "abc");
}

TEST(CommandLine, AVerbIsAVerbOnlyWhereOneCanStand) {
  EXPECT_EQ(parse("kill create KILL").verb, Verb::other);
  EXPECT_EQ(parse("--root create state x").verb, Verb::other);
  EXPECT_EQ(parse("--root run create update").verb, Verb::create);
  EXPECT_EQ(parse("--root run create update").container, "update");
  EXPECT_EQ(parse("create --bundle run create").container, "create");
  EXPECT_EQ(parse("--debug=true -log x run -d run").verb, Verb::run);
  EXPECT_EQ(parse("state create").verb, Verb::other);
  EXPECT_EQ(parse("").verb, Verb::other);
  EXPECT_EQ(parse("--version").verb, Verb::other);
}

TEST(CommandLine, WhatIsPassedOnIsKnownAtTheFirstLook) {
  for (const char* text :
       {"state x", "--root run kill create KILL", "--version", "--log=x --debug list", "exec x run"}) {
    std::vector<const char*> pointers;
    const std::vector<std::string> all = words(text);
    for (const std::string& word : all) {
      pointers.push_back(word.c_str());
    }
    EXPECT_TRUE(is_passed_on(pointers)) << text;
    EXPECT_EQ(parse(text).verb, Verb::other) << text;
  }
  for (const char* text : {"create x", "--root /r --log l run x", "--systemd-cgroup update x", "delete x", "hook x"}) {
    std::vector<const char*> pointers;
    const std::vector<std::string> all = words(text);
    for (const std::string& word : all) {
      pointers.push_back(word.c_str());
    }
    EXPECT_FALSE(is_passed_on(pointers)) << text;
  }
}

TEST(CommandLine, DeleteHasNoValuesAndRestoreHasMany) {
  EXPECT_EQ(parse("delete -f abc").container, "abc");
  EXPECT_EQ(parse("delete --force abc").verb, Verb::remove);
  EXPECT_EQ(parse("delete -r abc").container, "abc");
  const CommandLine line = parse("restore --image-path /i --work-path /w --empty-ns network -d abc");
  EXPECT_EQ(line.verb, Verb::restore);
  EXPECT_EQ(line.container, "abc");
  EXPECT_EQ(line.bundle, ".");
}

TEST(CommandLine, AShortOptionMayHaveItsPathInTheSameWord) {
  EXPECT_EQ(parse("create -b/a=b abc").bundle, "/a=b");
  EXPECT_EQ(parse("create -b./b -f/x abc").bundle, "./b");
  EXPECT_EQ(parse("create -b./b -f/x abc").config, "/x");
  EXPECT_EQ(parse("create -bundle /b abc").bundle, "/b");
  EXPECT_EQ(with_resources({"update", "-r/a=b", "abc"}, parse("update -r/a=b abc"), "/c")[1], "-r/c");
}

TEST(CommandLine, KnowsWhetherAContainerEndsWithItsRuntime) {
  for (const char* text : {"run x", "run -b /b x", "restore x", "run --detach=false x"}) {
    EXPECT_TRUE(parse(text).ends_with_runtime) << text;
  }
  for (const char* text : {"run -d x", "run x --detach", "restore --detach x", "run --keep x", "create x", "state x"}) {
    EXPECT_FALSE(parse(text).ends_with_runtime) << text;
  }
}

TEST(CommandLine, KnowsWhereAnUpdateIsReadFrom) {
  for (const char* text : {"update -r - abc", "update --resources=- abc", "update abc --resources -", "update -r=- abc",
                           "update -r- abc"}) {
    const std::vector<std::string> all = words(text);
    const CommandLine line = parse_command_line(all);
    EXPECT_EQ(line.verb, Verb::update);
    EXPECT_EQ(line.resources, "-") << text;
    EXPECT_EQ(line.container, "abc") << text;
    const CommandLine changed = parse_command_line(with_resources(all, line, "/dev/fd/9"));
    EXPECT_EQ(changed.resources, "/dev/fd/9") << text;
    EXPECT_EQ(changed.container, "abc") << text;
  }
  EXPECT_EQ(parse("update --cpu-share 5 abc").resources_at, 0U);
  EXPECT_EQ(parse("update --cpu-share 5 abc").container, "abc");
}

}  // namespace
}  // namespace hf::oci
