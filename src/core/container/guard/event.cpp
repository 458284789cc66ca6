#include "core/container/guard/event.h"

namespace hf::container {

namespace {

std::string title_with(const Writer& writer, const std::string& pid) {
  std::string title = (writer.name.empty() ? "a process" : writer.name) + pid;
  if (!writer.inside.empty()) {
    return title + " in container " + writer.inside;
  }
  for (const std::string& ancestor : writer.through) {
    title += ", " + ancestor;
  }
  if (writer.service.empty() || writer.service == writer.name) {
    return title;
  }
  return title + (writer.through.empty() ? " for " : ", for ") + writer.service;
}

}  // namespace

std::string title_of(const Writer& writer) {
  if (!writer.is_known()) {
    return writer.name.empty() ? "an unknown process" : writer.name;
  }
  return title_with(writer, " (pid " + std::to_string(writer.pid.value) + ")");
}

std::string program_title_of(const Writer& writer) {
  return writer.is_known() ? title_with(writer, "") : title_of(writer);
}

std::string to_string(EventKind kind) {
  switch (kind) {
    case EventKind::attach: return "attach";
    case EventKind::detach: return "detach";
    case EventKind::write: return "write";
    case EventKind::cgroup_made: return "cgroup made";
    case EventKind::cgroup_joined: return "cgroup joined";
    case EventKind::cgroup_gone: return "cgroup gone";
    case EventKind::process_gone: return "process gone";
    case EventKind::reload: return "reload";
    case EventKind::drivers: return "drivers";
    case EventKind::evidence: return "evidence";
    case EventKind::lost: return "events lost";
    case EventKind::found_changed: return "found changed";
  }
  return "unknown";
}

}  // namespace hf::container
