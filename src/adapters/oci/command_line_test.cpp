#include "adapters/oci/command_line.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace hf::oci {
namespace {

std::vector<std::string> split_arguments(std::string_view line) {
  std::vector<std::string> arguments;
  for (const std::string_view argument : split(line, ' ')) {
    arguments.emplace_back(argument);
  }
  return arguments;
}

CommandLine parse(std::string_view line) { return parse_command_line(split_arguments(line)); }

TEST(CommandLine, ReadsTheOptionsOfContainerd) {
  const CommandLine line = parse(
      "--root /run/containerd/runc/k8s.io --log /run/log.json --log-format json --systemd-cgroup create --bundle "
      "/run/b --pid-file /run/b/init.pid abc");
  EXPECT_EQ(line.verb, Verb::create);
  EXPECT_EQ(line.bundle, "/run/b");
  EXPECT_EQ(line.container, "abc");
  EXPECT_EQ(line.log, "/run/log.json");
  EXPECT_EQ(line.log_format, "json");
}

TEST(CommandLine, ReadsTheOptionsOfConmon) {
  const CommandLine line =
      parse("--root=/run/runc --systemd-cgroup create -b /b --pid-file=/b/pidfile -f other.json abc");
  EXPECT_EQ(line.verb, Verb::create);
  EXPECT_EQ(line.bundle, "/b");
  EXPECT_EQ(line.config, "other.json");
  EXPECT_EQ(line.container, "abc");
}

TEST(CommandLine, FindsTheCommandOnlyInItsPosition) {
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

TEST(CommandLine, ReportsEveryOtherCommandAsOther) {
  for (const char* text :
       {"state x", "--root run kill create KILL", "--version", "--log=x --debug list", "exec x run"}) {
    EXPECT_EQ(parse(text).verb, Verb::other) << text;
  }
}

TEST(CommandLine, DeleteHasOnlyFlagsAndRestoreHasOptionsWithValues) {
  EXPECT_EQ(parse("delete -f abc").container, "abc");
  EXPECT_EQ(parse("delete --force abc").verb, Verb::remove);
  EXPECT_EQ(parse("delete -r abc").container, "abc");
  const CommandLine line = parse("restore --image-path /i --work-path /w --empty-ns network -d abc");
  EXPECT_EQ(line.verb, Verb::restore);
  EXPECT_EQ(line.container, "abc");
  EXPECT_EQ(line.bundle, ".");
}

TEST(CommandLine, AShortOptionMayHaveItsPathInTheSameArgument) {
  EXPECT_EQ(parse("create -b/a=b abc").bundle, "/a=b");
  EXPECT_EQ(parse("create -b./b -f/x abc").bundle, "./b");
  EXPECT_EQ(parse("create -b./b -f/x abc").config, "/x");
  EXPECT_EQ(parse("create -bundle /b abc").bundle, "/b");
  EXPECT_EQ(with_resources({"update", "-r/a=b", "abc"}, parse("update -r/a=b abc"), "/c")[1], "-r/c");
}

TEST(CommandLine, ReportsWhetherTheContainerEndsWithTheRuntime) {
  for (const char* text : {"run x", "run -b /b x", "restore x", "run --detach=false x"}) {
    EXPECT_TRUE(parse(text).ends_with_runtime) << text;
  }
  for (const char* text : {"run -d x", "run x --detach", "restore --detach x", "run --keep x", "create x", "state x"}) {
    EXPECT_FALSE(parse(text).ends_with_runtime) << text;
  }
}

TEST(CommandLine, FindsAndReplacesTheResourcesFileOfAnUpdate) {
  for (const char* text : {"update -r - abc", "update --resources=- abc", "update abc --resources -", "update -r=- abc",
                           "update -r- abc"}) {
    const std::vector<std::string> arguments = split_arguments(text);
    const CommandLine line = parse_command_line(arguments);
    EXPECT_EQ(line.verb, Verb::update);
    EXPECT_EQ(line.resources, "-") << text;
    EXPECT_EQ(line.container, "abc") << text;
    const CommandLine changed = parse_command_line(with_resources(arguments, line, "/dev/fd/9"));
    EXPECT_EQ(changed.resources, "/dev/fd/9") << text;
    EXPECT_EQ(changed.container, "abc") << text;
  }
  EXPECT_EQ(parse("update --cpu-share 5 abc").resources_at, 0U);
  EXPECT_EQ(parse("update --cpu-share 5 abc").container, "abc");
}

}  // namespace
}  // namespace hf::oci
