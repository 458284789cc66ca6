// What a cluster node and kubectl send: any content is parsed, or refused with a message. What is shown of it controls
// no terminal, and a cure that can be typed is one command.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/node_report/node_document.h"
#include "adapters/node_report/pods.h"
#include "check.h"
#include "core/base/shell.h"
#include "core/base/text.h"
#include "render/fleet.h"

namespace {

using namespace hf;

template <class T>
void show(const Result<T>& parsed, report::Question question) {
  check(parsed || !parsed.error().message.empty(), "an error has a message");
  if (!parsed) {
    return;
  }
  report::FleetReport report;
  report.question = question;
  const report::FleetMember member = {.node = "node", .name_space = "space", .pod = "pod", .obstacle = {}};
  if constexpr (std::is_same_v<T, report::DoctorReport>) {
    report.nodes = {answer_of(member, *parsed, report::Notes::shown)};
  } else {
    report.nodes = {answer_of(member, *parsed)};
  }
  for (const char byte : report::render_text(report)) {
    const bool is_mark = byte >= report::kRed && byte <= report::kPlain;
    check(is_mark || byte == '\n' || static_cast<unsigned char>(byte) >= 0x20U, "a text controls no terminal");
  }
  for (const report::Finding& finding : report.nodes.front().findings) {
    check(printable(finding.what) == finding.what, "a text has no mark");
    for (const std::string& cure : finding.cure) {
      const std::string typed = cure_from_afar(report, member, cure);
      check(typed.starts_with("on node: ") || arguments_in(typed), "a cure is one command");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  show(node_report::parse_doctor(text), report::Question::doctor);
  show(node_report::parse_containers(text), report::Question::ps);
  const Result<std::vector<report::BlameRecord>> records = node_report::parse_blame(text);
  for (const report::BlameRecord& record : records.value_or(std::vector<report::BlameRecord>())) {
    check(printable(record.container + record.error) == record.container + record.error, "a text has no mark");
  }
  show(records, report::Question::blame);
  show(node_report::parse_cpu_status(text), report::Question::cpu_status);
  const Result<std::vector<report::PodEntry>> pods = node_report::parse_pods(text);
  check(pods || !pods.error().message.empty(), "an error has a message");
  for (const report::PodEntry& pod : pods.value_or(std::vector<report::PodEntry>())) {
    check(report::is_cluster_name(pod.name) && report::is_cluster_name(pod.name_space), "a name is no option");
  }
  (void)node_report::on_one_line(text);
  (void)node_report::on_one_line_about(text, {.name_space = "space", .name = "pod"});
  return 0;
}
