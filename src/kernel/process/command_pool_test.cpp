#include "kernel/process/command_pool.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace hf::kernel {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<CommandEnd> run_scripts(const std::vector<std::string>& scripts, const PoolLimits& limits) {
  std::vector<CommandEnd> ends(scripts.size());
  run_side_by_side(
      {.count = scripts.size(),
       .arguments_of = [&](std::size_t index) { return std::vector<std::string>{"/bin/sh", "-c", scripts[index]}; },
       .ended = [&](std::size_t index, CommandEnd end) { ends[index] = std::move(end); },
       .waited = {}},
      limits);
  return ends;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

TEST(CommandPool, KeepsOutputAndErrorsApart) {
  const std::vector<CommandEnd> ends = run_scripts({"echo out; echo error >&2; exit 3", "cat; echo $0"}, {});
  EXPECT_EQ(ends[0].kind, CommandEnd::Kind::ended);
  EXPECT_EQ(ends[0].output, "out\n");
  EXPECT_EQ(ends[0].errors, "error\n");
  EXPECT_EQ(WEXITSTATUS(ends[0].status), 3);
  EXPECT_EQ(ends[1].output, "/bin/sh\n");  // its standard input is empty
}

TEST(CommandPool, RunsThemSideBySide) {
  const Clock::time_point start = Clock::now();
  const std::vector<CommandEnd> ends = run_scripts(std::vector<std::string>(8, "sleep 1; echo done"), {.at_once = 8});
  EXPECT_LT(seconds_since(start), 7);
  EXPECT_TRUE(std::ranges::all_of(ends, [](const CommandEnd& end) { return end.output == "done\n"; }));
}

TEST(CommandPool, RunsNoMoreThanItMay) {
  // Each waits until it would have seen a third one beside it.
  const std::string counts =
      "mkdir /tmp/hf-pool-$PPID-$1 2>/dev/null; ls -d /tmp/hf-pool-$PPID-* | wc -l; sleep 0.2; "
      "rmdir /tmp/hf-pool-$PPID-$1";
  std::vector<std::string> scripts;
  for (int i = 0; i < 6; ++i) {
    scripts.push_back("set -- " + std::to_string(i) + "; " + counts);
  }
  for (const CommandEnd& end : run_scripts(scripts, {.at_once = 2})) {
    EXPECT_TRUE(end.output == "1\n" || end.output == "2\n") << end.output;
  }
}

TEST(CommandPool, EndsWhatTakesTooLong) {
  const Clock::time_point start = Clock::now();
  const std::vector<CommandEnd> ends =
      run_scripts({"echo early; sleep 100", "echo fine"}, {.time = std::chrono::milliseconds(5000)});
  EXPECT_LT(seconds_since(start), 20);
  EXPECT_EQ(ends[0].kind, CommandEnd::Kind::timed_out);
  EXPECT_EQ(ends[0].output, "");
  EXPECT_EQ(ends[1].output, "fine\n");
}

TEST(CommandPool, EndsWhatSaysTooMuch) {
  const std::vector<CommandEnd> ends = run_scripts(
      {"yes", "head -c 1000 /dev/zero", "head -c 1001 /dev/zero; sleep 100", "head -c 100000 /dev/zero >&2"},
      {.output = 1000});
  EXPECT_EQ(ends[0].kind, CommandEnd::Kind::too_long);
  EXPECT_EQ(ends[0].output, "");
  EXPECT_EQ(ends[1].kind, CommandEnd::Kind::ended);
  EXPECT_EQ(ends[1].output.size(), 1000U);
  EXPECT_EQ(ends[2].kind, CommandEnd::Kind::too_long);
  EXPECT_EQ(ends[3].kind, CommandEnd::Kind::ended);
  EXPECT_EQ(ends[3].errors.size(), 4096U);
}

TEST(CommandPool, DoesNotWaitForChildrenThatHoldThePipe) {
  const Clock::time_point start = Clock::now();
  const std::vector<CommandEnd> ends = run_scripts({"sleep 100 & echo $!"}, {});
  EXPECT_LT(seconds_since(start), 15);
  EXPECT_EQ(ends[0].kind, CommandEnd::Kind::ended);
  EXPECT_NE(ends[0].output, "");
}

TEST(CommandPool, SaysWhatCannotBeStarted) {
  CommandEnd end;
  run_side_by_side({.count = 1,
                    .arguments_of = [](std::size_t) { return std::vector<std::string>{"/no/such/program"}; },
                    .ended = [&end](std::size_t, CommandEnd one) { end = std::move(one); },
                    .waited = {}},
                   {});
  EXPECT_EQ(WEXITSTATUS(end.status), 127);
  EXPECT_NE(end.errors.find("No such file"), std::string::npos) << end.errors;
}

}  // namespace
}  // namespace hf::kernel
