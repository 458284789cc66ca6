#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "render/blame.h"
#include "render/cpu.h"
#include "render/fleet.h"
#include "render/host.h"

namespace hf::report {
namespace {

constexpr std::size_t kMostRows = 500;     // of a node
constexpr std::size_t kMostFindings = 20;  // of a node
constexpr std::size_t kMostEvidence = 8;   // lines of a finding
constexpr std::size_t kMostCures = 8;      // of a finding
constexpr std::size_t kMostCell = 200;     // characters
constexpr std::size_t kMostReason = 300;   // bytes

NodeAnswer judged(FleetMember member, const Judgement& judgement) {
  NodeAnswer answer;
  answer.member = std::move(member);
  answer.level = judgement.level;
  answer.is_undecided = judgement.is_undecided;
  return answer;
}

char colour_of(Level level) { return level == Level::critical ? kRed : level == Level::warning ? kYellow : kGreen; }

void add_row(NodeAnswer& answer, std::vector<std::string> row) {
  if (answer.rows.size() >= kMostRows) {
    ++answer.left_out;
    return;
  }
  std::ranges::transform(row, row.begin(), [](const std::string& cell) { return cut_to_width(cell, kMostCell); });
  answer.rows.push_back(std::move(row));
}

template <class T>
void shrink(std::vector<T>& list, std::size_t most) {
  list.resize(std::min(list.size(), most));
  list.shrink_to_fit();
}

}  // namespace

NodeAnswer answer_of(FleetMember member, DoctorReport report, Notes notes) {
  NodeAnswer answer = judged(std::move(member), judge(report.findings));
  const Level shown = answer.is_undecided ? std::max(answer.level, Level::warning) : answer.level;
  add_row(answer, {marked(colour_of(shown), summary_line(report)), report.guard});
  if (notes == Notes::hidden) {
    std::erase_if(report.findings, is_hidden);
  }
  answer.left_out = report.findings.size() > kMostFindings ? report.findings.size() - kMostFindings : 0;
  shrink(report.findings, kMostFindings);
  for (Finding& finding : report.findings) {
    shrink(finding.evidence, kMostEvidence);
    shrink(finding.cure, kMostCures);
  }
  answer.findings = std::move(report.findings);
  return answer;
}

NodeAnswer answer_of(FleetMember member, const ContainerList& list) {
  NodeAnswer answer = judged(std::move(member), judge(list.lines));
  for (const ContainerLine& line : list.lines) {
    add_row(answer, cells_of(line, list.now));
  }
  if (list.lines.empty()) {
    add_row(answer, {"no containers"});
  }
  return answer;
}

NodeAnswer answer_of(FleetMember member, std::vector<BlameRecord> records) {
  NodeAnswer answer = judged(std::move(member), judge(records));
  std::ranges::sort(records, std::ranges::greater(), &BlameRecord::at);  // the newest are kept
  for (const BlameRecord& record : records) {
    add_row(answer, cells_of(record));
  }
  return answer;
}

NodeAnswer answer_of(FleetMember member, const CpuStatus& status) {
  NodeAnswer answer = judged(std::move(member), judge(status.containers));
  if (!status.problem.empty()) {
    add_row(answer, {"-", "-", "-", "-", "-", "CPUs are not managed: " + status.problem});
    return answer;
  }
  for (const CpuContainer& one : status.containers) {
    add_row(answer, cells_of(one));
  }
  if (status.containers.empty()) {
    add_row(answer, {"no containers", "pool " + to_string(status.pool)});
  }
  return answer;
}

NodeAnswer no_answer(FleetMember member, const std::string& reason) {
  NodeAnswer answer;
  answer.member = std::move(member);
  answer.error = cut_to(printable(reason.empty() ? "no reason is given" : reason), kMostReason);
  return answer;
}

}  // namespace hf::report
