#include "services/fleet/answer.h"

#include <utility>

#include <sys/wait.h>

#include "adapters/node_report/node_document.h"
#include "core/base/text.h"

namespace hf::fleet {
namespace {

using report::FleetMember;
using report::NodeAnswer;
using report::Question;

// kubectl's last line is only about the exit code, and the one before it has the reason.
std::string reason_in(const std::string& errors) {
  std::string reason;
  for (const std::string_view line : split(std::string_view(errors), '\n')) {
    const std::string_view trimmed = trim(line);
    if (!trimmed.empty() && !trimmed.starts_with("command terminated with exit code")) {
      reason = trimmed;
    }
  }
  return reason;
}

std::string ending_of(int status) {
  return WIFSIGNALED(status) ? "kubectl was ended by signal " + std::to_string(WTERMSIG(status))
                             : "kubectl ended with exit code " + std::to_string(WEXITSTATUS(status));
}

Result<NodeAnswer> parse_answer(const Reading& reading, const FleetMember& member, const std::string& output) {
  const std::string text = reading.inquiry.pod ? TRY(document_of(reading.inquiry, output)) : output;
  switch (reading.inquiry.question) {
    case Question::doctor: return answer_of(member, TRY(node_report::parse_doctor(text)), reading.notes);
    case Question::ps: {
      report::ContainerList list = TRY(node_report::parse_containers(text));
      list.now = reading.now;
      return answer_of(member, list);
    }
    case Question::blame: return answer_of(member, TRY(node_report::parse_blame(text)));
    case Question::cpu_status: return answer_of(member, TRY(node_report::parse_cpu_status(text)));
  }
  return fail(std::errc::invalid_argument, "no such question");
}

}  // namespace

Result<std::string> output_of(const kernel::CommandEnd& end, const kernel::PoolLimits& limits) {
  using Kind = kernel::CommandEnd::Kind;
  constexpr int kMebibyte = 20;  // bits
  switch (end.kind) {
    case Kind::not_started: return fail(std::errc::io_error, end.errors);
    case Kind::timed_out:
      return fail(std::errc::timed_out, "no answer within " + std::to_string(limits.time.count() / 1000) + " s");
    case Kind::too_long:
      return fail(std::errc::value_too_large,
                  "its answer is longer than " + std::to_string(limits.output >> kMebibyte) + " MiB");
    case Kind::ended: break;
  }
  if (end.status == 0) {
    return end.output;
  }
  const std::string reason = reason_in(end.errors);
  return fail(std::errc::io_error, reason.empty() ? ending_of(end.status) : reason);
}

Result<std::string> document_of(const Inquiry& inquiry, const std::string& output) {
  // The node itself selects the findings of a pod: they name no pod.
  return inquiry.pod && inquiry.question != Question::doctor ? node_report::on_one_line_about(output, *inquiry.pod)
                                                             : node_report::on_one_line(output);
}

NodeAnswer read_answer(const Reading& reading, const FleetMember& member, const kernel::CommandEnd& end) {
  const Result<std::string> output = output_of(end, reading.limits);
  if (end.kind != kernel::CommandEnd::Kind::ended || trim(end.output).empty()) {
    return no_answer(member, output ? "its answer is empty" : output.error().message);
  }
  // The exit code is that of holdfast, which is not 0 where it found a problem: then the document says which.
  Result<NodeAnswer> answer = parse_answer(reading, member, end.output);
  if (answer) {
    return *std::move(answer);
  }
  const std::string reason = end.status == 0 ? "" : reason_in(end.errors);  // such as a connection that broke
  return no_answer(member, answer.error().message + (reason.empty() ? "" : "; " + reason));
}

}  // namespace hf::fleet
