#include "render/fleet.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/shell.h"
#include "core/base/text.h"
#include "render/blame.h"
#include "render/cpu.h"
#include "render/finding.h"
#include "render/host.h"
#include "render/yaml.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Row columns_of(Question question) {
  Row columns;
  switch (question) {
    case Question::doctor: columns = {"VERDICT", "GUARD"}; break;
    case Question::ps: columns = container_columns(); break;
    case Question::blame: columns = blame_columns(); break;
    case Question::cpu_status: columns = cpu_columns(); break;
  }
  columns.insert(columns.begin(), "NODE");
  return columns;
}

std::vector<Row> rows_of(const FleetReport& report) {
  std::vector<Row> rows;
  for (const NodeAnswer& answer : report.nodes) {
    for (const Row& row : answer.rows) {
      rows.push_back({answer.member.node});
      rows.back().insert(rows.back().end(), row.begin(), row.end());
    }
  }
  if (report.question == Question::blame) {
    constexpr std::size_t kTime = 1;  // one timeline for all nodes
    std::ranges::sort(rows, {}, [](const Row& row) { return std::tie(row[kTime], row.front()); });
  }
  return rows;
}

std::string table_of(const FleetReport& report, std::size_t columns) {
  const std::vector<Row> rows = rows_of(report);
  if (rows.empty()) {
    return "";
  }
  TextTable table(columns_of(report.question), columns);
  for (const Row& row : rows) {
    table.add(row);
  }
  return "\n" + table.render();
}

std::string findings_of(const FleetReport& report, const NodeAnswer& answer) {
  std::vector<Finding> findings = answer.findings;
  for (Finding& finding : findings) {
    std::ranges::transform(finding.cure, finding.cure.begin(),
                           [&](const std::string& cure) { return cure_from_afar(report, answer.member, cure); });
  }
  const FleetMember& member = answer.member;
  return findings.empty() ? ""
                          : "\n" + marked(kBold, on_one_line(member.node)) + " (pod " + member.name_space + "/" +
                                member.pod + ")" + render_text(findings);
}

std::string left_out_of(const FleetReport& report, const NodeAnswer& answer) {
  if (answer.left_out == 0) {
    return "";
  }
  std::vector<std::string> command = report.kubectl;
  command.insert(command.end(),
                 {"exec", "-n", answer.member.name_space, answer.member.pod, "-c", report.container, "--", "holdfast"});
  return "\nnote: " + std::to_string(answer.left_out) + " more on " + answer.member.node + ": " +
         quoted_for_shell(command) + " " + to_string(report.question) + "\n";
}

std::string unanswered_of(const FleetReport& report, std::size_t columns) {
  TextTable table({"NODE", "POD", "NO ANSWER BECAUSE"}, columns);
  bool is_empty = true;
  for (const NodeAnswer& answer : report.nodes) {
    if (!answer.has_answered()) {
      const FleetMember& member = answer.member;
      table.add({member.node, member.pod.empty() ? "-" : member.name_space + "/" + member.pod, answer.error});
      is_empty = false;
    }
  }
  return is_empty ? "" : "\n" + table.render();
}

char colour_of(Level level) { return level == Level::critical ? kRed : level == Level::warning ? kYellow : kGreen; }

std::string json_of(const NodeAnswer& answer, std::string_view report) {
  const FleetMember& member = answer.member;
  Json json = {{"node", member.node}, {"answered", answer.has_answered()}};
  if (!member.pod.empty()) {
    json["namespace"] = member.name_space;
    json["pod"] = member.pod;
  }
  if (!answer.has_answered()) {
    json["error"] = answer.error;
    return dump(json);
  }
  std::string text = dump(json);
  text.back() = ',';
  return text + "\"report\":" + std::string(report.empty() ? "null" : report) + "}";
}

std::string indented(std::string_view lines) {
  std::string text;
  for (const std::string_view line : split(lines.substr(0, lines.find_last_not_of('\n') + 1), '\n')) {
    text += "  " + std::string(line) + "\n";
  }
  return text;
}

}  // namespace

std::string render_text(const FleetReport& report, std::size_t columns) {
  const FleetVerdict verdict = verdict_of(report);
  std::string text = marked(colour_of(verdict.level), verdict.headline) + "\n" + table_of(report, columns);
  for (const NodeAnswer& answer : report.nodes) {
    text += findings_of(report, answer) + left_out_of(report, answer);
  }
  return text + unanswered_of(report, columns);
}

std::string FleetDocument::head(const FleetReport& report) const {
  const Json json = {{"version", kVersion}, {"schema", "fleet"}, {"command", to_string(report.question)}};
  if (format_ == Format::yaml) {
    return json_to_yaml(dump(json)) + "\"nodes\":\n";
  }
  std::string text = dump(json);
  text.back() = ',';
  return text + "\"nodes\":[";
}

std::string FleetDocument::node(const NodeAnswer& answer, std::string_view report) {
  const std::string json = json_of(answer, report);
  if (format_ == Format::yaml) {
    return indented(json_to_yaml("[" + json + "]"));
  }
  return (std::exchange(is_first_, false) ? "\n" : ",\n") + json;
}

std::string FleetDocument::tail(const FleetReport& report) const {
  const FleetVerdict verdict = verdict_of(report);
  const Json json = {
      {"level", to_string(verdict.level)}, {"headline", verdict.headline}, {"nodes", verdict.nodes},
      {"critical", verdict.critical},      {"warning", verdict.warning},   {"undecided", verdict.undecided},
      {"unanswered", verdict.unanswered}};
  return format_ == Format::yaml ? json_to_yaml(dump({{"verdict", json}})) : "\n],\"verdict\":" + dump(json) + "}\n";
}

}  // namespace hf::report
