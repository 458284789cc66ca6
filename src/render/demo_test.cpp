#include "render/demo.h"

#include <gtest/gtest.h>

#include "render/text_table.h"

namespace hf::report {
namespace {

DemoContainer container_with(std::uint64_t attacks, std::uint64_t repaired) {
  DemoContainer it;
  it.id = "hf-demo-1";
  it.launcher = "runc 1.1.5";
  it.refusal = "EPERM";
  it.attacks["a replaced program"] = attacks;
  it.repaired = repaired;
  it.losses_ns = {40'000, 20'000, 30'000};
  it.writers["runc"] = attacks;
  it.seen = {1000, 2, 1, 150'000};
  return it;
}

TEST(SpreadOf, PicksValuesThatWereMeasured) {
  EXPECT_EQ(spread_of({}), Spread());
  EXPECT_EQ(spread_of({7}), (Spread{1, 7, 7, 7}));
  EXPECT_EQ(spread_of({4, 1, 3, 2}), (Spread{4, 2, 4, 4}));
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    many.push_back(i);
  }
  EXPECT_EQ(spread_of(many), (Spread{1000, 500, 990, 1000}));
}

TEST(DemoReport, HasHeldWhereEveryAttackOnEveryContainerWasRepaired) {
  DemoReport report;
  EXPECT_FALSE(report.has_held());
  report.containers = {container_with(3, 3)};
  EXPECT_TRUE(report.has_held());
  report.containers.push_back(container_with(0, 0));
  EXPECT_FALSE(report.has_held());
  report.containers.back() = container_with(3, 2);
  EXPECT_FALSE(report.has_held());
}

TEST(DemoReport, StartsWithTheVerdict) {
  DemoReport report;
  report.containers = {container_with(3, 3)};
  EXPECT_TRUE(render_text(report).starts_with(marked(kGreen, "held") + ": 3 attacks, all repaired, in 30 µs (median)"));
  EXPECT_NE(render_text(report).find("1000 opens, 2 refused, longest outage 150 µs"), std::string::npos);
  report.containers = {container_with(3, 1)};
  EXPECT_TRUE(render_text(report).starts_with(marked(kRed, "not held") + ": 3 attacks, 2 not repaired"));
  report.is_interrupted = true;
  EXPECT_TRUE(render_text(report).starts_with(marked(kYellow, "interrupted")));
}

TEST(DemoReport, SaysWhyARepairIsPutOff) {
  DemoReport report;
  report.containers = {container_with(3, 3)};
  EXPECT_EQ(render_text(report).find("waits"), std::string::npos);
  report.containers.front().delay = "until runc 1.0.0~rc93 has ended";
  EXPECT_NE(render_text(report).find("of which it waits            until runc 1.0.0~rc93 has ended\n"),
            std::string::npos)
      << render_text(report);
}

TEST(DemoReport, IsJsonWithTheSameFigures) {
  DemoReport report;
  report.containers = {container_with(3, 3)};
  const std::string json = render_json(report);
  for (const char* part : {"\"version\": 1", "\"held\": true", "\"median_ns\": 30000", "\"attacks\": 3"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part;
  }
}

TEST(DemoTimeline, AlignsTheFiguresWithTheirHeadings) {
  const std::string line = render_line({3, 41, 41, {41, 38'000, 90'000, 120'000}, 0, "runc (pid 8)"});
  EXPECT_EQ(line, "       3 s        41        41     38 µs     90 µs    120 µs         0   runc (pid 8)");
  EXPECT_EQ(head_of_timeline(), "      time   attacks  repaired    median       p99   longest   refused   done by");
}

}  // namespace
}  // namespace hf::report
