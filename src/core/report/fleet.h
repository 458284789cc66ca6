// Fleet: what the nodes of a cluster answered to one question, and the verdict over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/blame.h"
#include "core/report/cpu_report.h"
#include "core/report/finding.h"
#include "core/report/fleet_member.h"
#include "core/report/host_report.h"
#include "core/report/verdict.h"

namespace hf::report {

enum class Question : std::uint8_t { doctor, ps, blame, cpu_status };
std::string to_string(Question question);  // as it is typed: "cpu status"

// What is kept of a node's answer. Limits of the lists and texts keep it small, whatever the node sends.
struct NodeAnswer {
  FleetMember member;
  std::string error;  // why there is no answer; "": there is one
  Level level = Level::good;
  bool is_undecided = false;                   // it could not be determined, and nothing else is wrong
  std::vector<std::vector<std::string>> rows;  // of the table, without the node; cells may have colours
  std::vector<Finding> findings;               // of `doctor`
  std::size_t left_out = 0;                    // rows and findings beyond the limits

  [[nodiscard]] bool has_answered() const { return error.empty(); }
};

struct FleetReport {
  Question question = Question::doctor;
  std::vector<NodeAnswer> nodes;
  std::vector<std::string> kubectl = {"kubectl"};  // the program and its options, for cures
  std::string container = "guard";                 // of the pods, in which holdfast runs
};

struct FleetVerdict {
  Level level = Level::good;
  std::string headline;  // "2 of 500 nodes have critical problems; 3 did not answer"
  std::size_t nodes = 0;
  std::size_t critical = 0;
  std::size_t warning = 0;
  std::size_t undecided = 0;
  std::size_t unanswered = 0;
};
FleetVerdict verdict_of(const FleetReport& report);
void sort_worst_first(FleetReport& report);  // then by name; nodes without an answer come last
void sort_by_name(FleetReport& report);

// How bad the answer of a node is.
struct Judgement {
  Level level = Level::good;
  bool is_undecided = false;
};
Judgement judge(const std::vector<Finding>& findings);
Judgement judge(const std::vector<ContainerLine>& lines);
Judgement judge(const std::vector<BlameRecord>& records);
Judgement judge(const std::vector<CpuContainer>& containers);

// A cure as it is typed where kubectl is: "kubectl exec -n NS POD -c guard -- holdfast heal train". The node's text is
// not trusted: only a known command with literal arguments is completed, and all else is text that names the node.
std::string cure_from_afar(const FleetReport& report, const FleetMember& member, const std::string& cure);

}  // namespace hf::report
