#include "services/rules/target.h"

#include <utility>

#include <gtest/gtest.h>

namespace hf::rules {
namespace {

TEST(Target, IsParsedByItsPrefix) {
  EXPECT_EQ(std::get<container::Pid>(*parse_target("pid:7")).value, 7);
  EXPECT_EQ(std::get<container::Pid>(*parse_target("pid:2147483647")).value, 2147483647);
  EXPECT_EQ(std::get<CgroupDirectory>(*parse_target("cgroup:/a/b")).path, "/a/b");
  EXPECT_EQ(std::get<CgroupDirectory>(*parse_target("cgroup:/a:b")).path, "/a:b");
  EXPECT_EQ(std::get<container::ProgramId>(*parse_target("program:9")).value, 9U);
  EXPECT_EQ(std::get<FilePath>(*parse_target("file:x.json")).path, "x.json");
}

TEST(Target, IsRefusedWithWhatItsPrefixWants) {
  for (const auto& [text, wanted] : {
           std::pair("pid:", "pid:N wants a process number"),
           std::pair("pid:x", "pid:N wants a process number"),
           std::pair("pid:0", "pid:N wants a process number"),
           std::pair("pid:-1", "pid:N wants a process number"),
           std::pair("pid:2147483648", "pid:N wants a process number"),
           std::pair("program:", "program:ID wants a program's number"),
           std::pair("program:x", "program:ID wants a program's number"),
           std::pair("cgroup:", "cgroup:PATH wants a path that begins with /"),
           std::pair("cgroup:a", "cgroup:PATH wants a path that begins with /"),
           std::pair("file:", "want pid:N, cgroup:PATH, program:ID or file:PATH"),
           std::pair("web", "want pid:N, cgroup:PATH, program:ID or file:PATH"),
           std::pair("", "want pid:N, cgroup:PATH, program:ID or file:PATH"),
       }) {
    const Result<Target> target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().message, "target '" + std::string(text) + "': " + wanted);
  }
}

}  // namespace
}  // namespace hf::rules
