#include "render/heal.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "render/json_string.h"
#include "render/text_table.h"

namespace hf::report {
namespace {

std::string verdict_of(const HealReport::Line& line, bool is_done) {
  if (!line.is_well()) {
    const std::string lacks = is_done ? "still lacks " : "would still lack ";
    return marked(kRed, line.left.empty() ? "failed" : lacks + join(line.left, ", "));
  }
  if (line.steps.empty()) {
    return marked(kGreen, "has everything it is owed");
  }
  return is_done ? marked(kGreen, "healed") : marked(kYellow, "would be healed");
}

}  // namespace

std::string render_text(const HealReport& report) {
  if (report.lines.empty() && report.not_owed.empty()) {
    return "no container of this host is owed a device\n";
  }
  std::string text;
  for (const std::string& container : report.not_owed) {
    text += on_one_line(container) + ": no trusted evidence gives it a device, so there is nothing to give back\n";
  }
  for (const HealReport::Line& line : report.lines) {
    text += on_one_line(line.container) + ": " + verdict_of(line, report.is_done) + "\n";
    for (const std::string& reason : line.why_left) {
      text += "  " + on_one_line(reason) + "\n";
    }
    text += line.lost.empty() ? "" : "  could not open: " + on_one_line(join(line.lost, ", ")) + "\n";
    for (const std::string& step : line.steps) {
      text += std::string("  ") + (report.is_done ? "did: " : "would: ") + on_one_line(step) + "\n";
    }
    text += line.error.empty() ? "" : "  " + on_one_line(line.error) + "\n";
  }
  return text;
}

std::string render_json(const HealReport& report) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const HealReport::Line& line : report.lines) {
    nlohmann::ordered_json entry = {
        {"id", line.id},       {"container", line.container}, {"well", line.is_well()},   {"lost", line.lost},
        {"steps", line.steps}, {"left", line.left},           {"why_left", line.why_left}};
    if (!line.error.empty()) {
      entry["error"] = line.error;
    }
    lines.push_back(std::move(entry));
  }
  const nlohmann::ordered_json json = {
      {"version", 1}, {"done", report.is_done}, {"containers", std::move(lines)}, {"not_owed", report.not_owed}};
  return render_document(json);
}

}  // namespace hf::report
