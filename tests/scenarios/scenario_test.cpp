#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/report/host_report.h"
#include "render/finding.h"
#include "render/host.h"
#include "render/rules.h"
#include "services/doctor/doctor.h"
#include "story.h"

namespace hf::test {
namespace {

// HOLDFAST_STORIES=DIRECTORY runs the scenarios of another directory.
std::string stories() {
  const char* const directory = std::getenv("HOLDFAST_STORIES");
  return directory == nullptr ? HOLDFAST_STORIES : directory;
}

class Scenario : public testing::TestWithParam<std::string> {};

// The finding as `holdfast doctor` prints it.
std::string text_of(const report::Finding& finding) {
  report::DoctorReport report;
  report.findings = {finding};
  return render_text(report);
}

TEST_P(Scenario, IsDiagnosedAsExpected) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to create device nodes";
  }
  Story story(stories(), GetParam());
  host::OpenHost machine{story.host(), story.filters(), story.prober(), kNow};
  const Result<report::DoctorReport> report = doctor::diagnose(machine, {});
  ASSERT_TRUE(report) << report.error().message;
  const std::string text = render_text(*report);
  if (std::getenv("HOLDFAST_TELL") != nullptr) {
    std::cout << text;
  }

  using Key = std::pair<std::string, std::string>;
  std::set<Key> wanted;
  for (const Expectation& expected : story.findings()) {
    if (!expected.is_banned) {
      wanted.emplace(expected.code, expected.subject);
    }
    const bool found = std::ranges::any_of(report->findings, [&expected](const report::Finding& finding) {
      return finding.code == expected.code && finding.subject == expected.subject &&
             text_of(finding).find(expected.text) != std::string::npos;
    });
    EXPECT_NE(found, expected.is_banned) << expected.code << " " << expected.subject << " with '" << expected.text
                                         << (expected.is_banned ? "' is in\n" : "' is not in\n") << text;
  }
  std::set<std::tuple<std::string, std::string, std::string>> verdicts;
  for (const report::Finding& finding : report->findings) {
    EXPECT_TRUE(wanted.contains({finding.code, finding.subject})) << "not expected: " << finding.code << "\n" << text;
    EXPECT_TRUE(verdicts.emplace(finding.code, finding.subject, sentence_of(finding)).second) << "reported twice:\n"
                                                                                              << text;
    EXPECT_FALSE(report::page_of(finding.code).empty()) << finding.code << " has no page in docs/FINDINGS.md";
  }
  const Result<report::ContainerList> list = doctor::list_containers(machine);
  ASSERT_TRUE(list) << list.error().message;
  std::map<std::string, std::string> states;
  for (const report::ContainerLine& line : list->lines) {
    states[title_of(line.container)] = to_string(line.state);
  }
  EXPECT_EQ(states, story.states());
}

INSTANTIATE_TEST_SUITE_P(Stories, Scenario, testing::ValuesIn(list_stories(stories())),
                         [](const testing::TestParamInfo<std::string>& story) {
                           std::string name = story.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hf::test
