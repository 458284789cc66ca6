#include "services/fleet/question.h"

#include <utility>

#include "core/base/text.h"

namespace hf::fleet {
namespace {

std::vector<std::string> with(std::vector<std::string> command, const std::vector<std::string>& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::vector<std::string> arguments_of(const Inquiry& inquiry) {
  using report::Question;
  const std::vector<std::string> pod = inquiry.pod
                                           ? std::vector<std::string>{inquiry.pod->name_space + "/" + inquiry.pod->name}
                                           : std::vector<std::string>();
  switch (inquiry.question) {
    case Question::doctor: return with({"doctor"}, pod);
    case Question::blame: return with({"blame"}, pod);
    case Question::ps: return {"ps"};
    case Question::cpu_status: return {"cpu", "status"};
  }
  return {};
}

}  // namespace

Result<PodName> parse_pod_name(const std::string& text, const std::string& name_space) {
  const std::size_t slash = text.find('/');
  PodName name =
      slash == std::string::npos ? PodName{name_space, text} : PodName{text.substr(0, slash), text.substr(slash + 1)};
  const bool is_namespace_fine = slash == std::string::npos ? name_space.empty() || report::is_cluster_name(name_space)
                                                            : report::is_cluster_name(name.name_space);
  if (!is_namespace_fine || !report::is_cluster_name(name.name)) {
    return fail(std::errc::invalid_argument, "pod " + quote(text) + ": want NAME or NAMESPACE/NAME");
  }
  if (slash != std::string::npos && !name_space.empty() && name_space != name.name_space) {
    return fail(std::errc::invalid_argument, "pod " + quote(text) + ": --namespace says " + quote(name_space));
  }
  return name;
}

std::vector<std::string> list_command(const Inquiry& inquiry) {
  const std::vector<std::string> where =
      inquiry.name_space.empty() ? std::vector<std::string>{"-A"} : std::vector<std::string>{"-n", inquiry.name_space};
  return with(with(with(inquiry.kubectl, {"get", "pods"}), where), {"-l", inquiry.selector, "-o", "json"});
}

std::vector<std::string> pod_command(const Inquiry& inquiry) {
  const std::vector<std::string> where = inquiry.pod->name_space.empty()
                                             ? std::vector<std::string>()
                                             : std::vector<std::string>{"-n", inquiry.pod->name_space};
  return with(with(with(inquiry.kubectl, {"get", "pod", inquiry.pod->name}), where), {"-o", "json"});
}

std::vector<std::string> exec_command(const Inquiry& inquiry, const report::FleetMember& member) {
  const std::vector<std::string> pod = {"exec", "-n", member.name_space, member.pod, "-c", inquiry.container, "--"};
  const std::vector<std::string> command = with(with({"holdfast"}, arguments_of(inquiry)), inquiry.options);
  return with(with(with(inquiry.kubectl, pod), command), {"-o", "json"});
}

}  // namespace hf::fleet
