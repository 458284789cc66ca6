#include "services/fleet/fleet.h"

#include <algorithm>
#include <vector>

#include "adapters/node_report/pods.h"
#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "services/fleet/answer.h"

namespace hf::fleet {
namespace {

using report::FleetMember;

void say(const Settings& settings, const std::string& activity) {
  if (settings.progress) {
    settings.progress(activity);
  }
}

Result<std::string> run_kubectl(const Settings& settings, const std::vector<std::string>& command) {
  kernel::PoolLimits limits = settings.limits;
  limits.output = node_report::kMostPodBytes;
  kernel::CommandEnd end;
  kernel::run_side_by_side({.count = 1,
                            .arguments_of = [&command](std::size_t) { return command; },
                            .ended = [&end](std::size_t, kernel::CommandEnd ended) { end = std::move(ended); },
                            .waited = [&settings] { say(settings, "asking for the pods of holdfast"); }},
                           limits);
  const Result<std::string> output = output_of(end, limits);
  return output ? output : fail(output.error().code, "kubectl: " + output.error().message);
}

// The pod with its namespace, and its node as the only one to ask.
Result<void> find_pod(Settings& settings) {
  Inquiry& inquiry = settings.inquiry;
  const report::PodEntry pod = TRY(node_report::parse_pod(TRY(run_kubectl(settings, pod_command(inquiry)))));
  if (pod.node.empty()) {
    return fail(std::errc::no_such_device, "pod " + report::title_of(pod) + " is on no node yet");
  }
  inquiry.pod = PodName{pod.name_space, pod.name};
  inquiry.nodes = {pod.node};
  return {};
}

// A tenant's pod must not answer in holdfast's place.
Result<void> check_namespaces(const Inquiry& inquiry, const std::vector<report::PodEntry>& pods) {
  constexpr std::size_t kMostShown = 8;
  std::vector<std::string> found = report::namespaces_of(pods, inquiry.container);
  if (!inquiry.name_space.empty() || found.size() < 2) {
    return {};
  }
  const std::size_t left_out = found.size() - std::min(found.size(), kMostShown);
  found.resize(found.size() - left_out);
  return fail(std::errc::invalid_argument, "pods with the label " + quote(inquiry.selector) + " and a container " +
                                               quote(inquiry.container) +
                                               " are in several namespaces: " + join(found, ", ") +
                                               (left_out == 0 ? "" : " and " + std::to_string(left_out) + " more") +
                                               "; say which is holdfast's: --holdfast-namespace NAMESPACE");
}

Result<std::vector<FleetMember>> find_members(const Settings& settings) {
  const Inquiry& inquiry = settings.inquiry;
  const std::vector<report::PodEntry> pods =
      TRY(node_report::parse_pods(TRY(run_kubectl(settings, list_command(inquiry)))));
  TRY(check_namespaces(inquiry, pods));
  std::vector<FleetMember> members = report::members_of(pods, inquiry.container);
  if (!inquiry.nodes.empty()) {
    return report::select_members(members, inquiry.nodes);
  }
  if (members.empty()) {
    return fail(std::errc::no_such_device,
                "no pod with the label " + quote(inquiry.selector) + " has a container " + quote(inquiry.container) +
                    (inquiry.name_space.empty() ? "" : " in namespace " + quote(inquiry.name_space)));
  }
  return members;
}

Result<void> keep(Answers& answers, const Inquiry& inquiry, const FleetMember& member, const std::string& output) {
  return answers.keep(member, TRY(document_of(inquiry, output)));
}

// Asks those that can be asked.
void ask_members(const Settings& settings, const std::vector<FleetMember>& members, Answers& answers) {
  std::vector<const FleetMember*> asked;
  for (const FleetMember& member : members) {
    if (member.obstacle.empty()) {
      asked.push_back(&member);
    } else {
      answers.report.nodes.push_back(report::no_answer(member, member.obstacle));
    }
  }
  const Reading reading{settings.inquiry, settings.limits, settings.notes, kernel::wall_now() / 1000};
  std::size_t done = 0;
  kernel::run_side_by_side(
      {.count = asked.size(),
       .arguments_of = [&](std::size_t index) { return exec_command(settings.inquiry, *asked[index]); },
       .ended =
           [&](std::size_t index, const kernel::CommandEnd& end) {
             ++done;
             report::NodeAnswer answer = read_answer(reading, *asked[index], end);
             if (answer.has_answered() && settings.documents == Documents::kept) {
               const Result<void> kept = keep(answers, settings.inquiry, answer.member, end.output);
               answer = kept ? std::move(answer) : report::no_answer(answer.member, kept.error().message);
             }
             answers.report.nodes.push_back(std::move(answer));
           },
       .waited =
           [&] {
             say(settings, "asked " + std::to_string(done) + " of " + std::to_string(asked.size()) +
                               (asked.size() == 1 ? " node" : " nodes"));
           }},
      settings.limits);
}

}  // namespace

Result<void> Answers::keep(const FleetMember& member, const std::string& document) {
  if (!file_) {
    file_ = TRY(kernel::ScratchFile::open());
  }
  places_[{member.name_space, member.pod}] = TRY(file_->append(document));
  return {};
}

Result<std::string> Answers::document_of(const FleetMember& member) const {
  const auto found = places_.find({member.name_space, member.pod});
  return found == places_.end() ? Result<std::string>("") : file_->read(found->second);
}

Result<Answers> ask(Settings settings) {
  if (settings.inquiry.pod) {
    TRY(find_pod(settings));
  }
  const std::vector<FleetMember> members = TRY(find_members(settings));
  Answers answers;
  answers.report.question = settings.inquiry.question;
  answers.report.container = settings.inquiry.container;
  answers.report.kubectl = settings.inquiry.kubectl;
  answers.report.kubectl.front() = base_name(settings.inquiry.kubectl.front());  // as people type it
  ask_members(settings, members, answers);
  report::sort_worst_first(answers.report);
  return answers;
}

}  // namespace hf::fleet
