#include "render/setup.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "render/json_string.h"
#include "render/text_table.h"

namespace hf::report {
namespace {

// A line of a file as it may be shown: tabs are kept, other control characters are replaced.
std::string shown_line(std::string_view line) {
  std::string shown(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
  std::ranges::replace_if(
      shown,
      [](char byte) {
        const auto code = static_cast<unsigned char>(byte);
        return (code < 0x20 && byte != '\t') || code == 0x7f;
      },
      '?');
  return shown;
}

std::string render_diff_line(std::string_view line) {
  const std::string shown = shown_line(line);
  const char mark = line.starts_with('+') ? kGreen : line.starts_with('-') ? kRed : kPlain;
  return mark == kPlain ? shown : marked(mark, shown);
}

std::string render_diff_text(std::string_view diff) {
  std::string text;
  while (!diff.empty()) {
    const std::size_t newline = std::min(diff.find('\n'), diff.size());
    text += render_diff_line(diff.substr(0, newline)) + "\n";
    diff.remove_prefix(std::min(newline + 1, diff.size()));
  }
  return text;
}

std::string render_lines(const std::vector<std::string>& lines, const std::string& prefix) {
  std::string text;
  for (const std::string& line : lines) {
    text += prefix + on_one_line(line) + "\n";
  }
  return text;
}

char mark_of(const SetupReport& report) {
  return !report.failed.empty() ? kRed : report.is_done || report.changes_nothing() ? kGreen : kYellow;
}

}  // namespace

std::string render_text(const SetupReport& report) {
  std::string text = report.subject + ": " + marked(mark_of(report), on_one_line(report.verdict)) + "\n";
  for (const SetupReport::File& file : report.files) {
    text += render_diff_text(file.diff);
  }
  text += render_lines(report.steps, report.is_done ? "did: " : "would: ");
  text += render_lines(report.failed, "failed: ");
  text += render_lines(report.notes, "note: ");
  if (!report.command.empty()) {
    text += (report.is_done ? "run this to make it count: " : "then run: ") + on_one_line(report.command) + "\n";
  }
  if (!report.manifest.empty()) {
    text +=
        "on Kubernetes, once for the cluster, and runtimeClassName: holdfast in the pods:\nkubectl apply -f - <<END\n" +
        report.manifest + "END\n";
  }
  return text;
}

std::string render_json(const SetupReport& report) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const SetupReport::File& file : report.files) {
    files.push_back({{"path", file.path}, {"diff", file.diff}});
  }
  nlohmann::ordered_json json = {
      {"version", 1},           {"subject", report.subject},        {"verdict", report.verdict},
      {"done", report.is_done}, {"changed", !report.steps.empty()}, {"files", std::move(files)},
      {"steps", report.steps},  {"failed", report.failed},          {"notes", report.notes},
      {"command", nullptr}};
  if (!report.command.empty()) {
    json["command"] = report.command;
  }
  if (!report.manifest.empty()) {
    json["manifest"] = report.manifest;
  }
  return render_document(json);
}

}  // namespace hf::report
