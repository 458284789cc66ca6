#include "render/text_diff.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "render/setup.h"

namespace hf::report {
namespace {

TEST(TextDiff, ShowsNothingWhereNothingChanged) {
  EXPECT_EQ(render_diff({"f", "", ""}), "");
  EXPECT_EQ(render_diff({"f", "a\nb\n", "a\nb\n"}), "");
}

TEST(TextDiff, ShowsAChangeWithThreeLinesAround) {
  EXPECT_EQ(render_diff({"f", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n"}),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(TextDiff, ShowsChangesThatAreFarApartAsSeparateHunks) {
  const std::string text = render_diff({"f", "a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\n8\nB\n"});
  EXPECT_EQ(text, "--- f\n+++ f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-b\n+B\n");
}

TEST(TextDiff, ShowsCreatedAndRemovedFiles) {
  EXPECT_EQ(render_diff({"f", "", "a\nb\n"}), "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(render_diff({"f", "a\n", ""}), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
}

TEST(TextDiff, ShowsWhatWasAddedFromItsOwnFirstLine) {
  EXPECT_EQ(render_diff({"f", "1\n[a]\nx\n\n[b]\n", "one\n[a]\nx\n\n[n]\nx\n\n[b]\n"}),
            "--- f\n+++ f\n@@ -1,5 +1,8 @@\n-1\n+one\n [a]\n x\n \n+[n]\n+x\n+\n [b]\n");
}

TEST(TextDiff, SaysWhereALastLineHasNoNewline) {
  EXPECT_EQ(render_diff({"f", "a", "a\n"}), "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n");
}

TEST(TextDiff, IsTheShortestOne) {
  const std::string text = render_diff({"f", "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"});
  std::size_t changes = 0;
  for (const std::string_view line : split(text, '\n')) {
    changes +=
        (line.starts_with('+') && !line.starts_with("+++")) || (line.starts_with('-') && !line.starts_with("---"));
  }
  EXPECT_EQ(changes, 5U);
}

TEST(SetupReport, ShowsTheVerdictFirstAndTheCommandLast) {
  SetupReport report;
  report.subject = "docker";
  report.verdict = "registered";
  report.is_done = true;
  report.files = {{"/etc/x", "--- /etc/x\n+++ /etc/x\n@@ -1,1 +1,1 @@\n-a\x1b[31m\r\n+\tb\n"}};
  report.steps = {"wrote /etc/x"};
  report.command = "systemctl reload docker";
  const std::string text = render_text(report);
  EXPECT_TRUE(text.starts_with("docker: ")) << text;
  EXPECT_TRUE(text.ends_with("run this to make it count: systemctl reload docker\n")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "control characters of a file do not reach the terminal";
  EXPECT_NE(text.find("+\tb"), std::string::npos) << text;
  EXPECT_NE(render_json(report).find("\"command\": \"systemctl reload docker\""), std::string::npos);
}

}  // namespace
}  // namespace hf::report
