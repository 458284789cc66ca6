#include "core/container/gate.h"

#include "core/bpf/interpret.h"

namespace hf::container {
namespace {

// What one gate says; nullopt where it cannot be told from outside.
std::optional<bool> allows(const Gate& gate, const device::Request& request) {
  if (gate.meaning) {
    const bool allowed = gate.meaning->allows(request);
    return allowed && !gate.doubt.empty() ? std::nullopt : std::optional(allowed);
  }
  if (!gate.program || gate.program->code.empty()) {
    return std::nullopt;
  }
  // A program that cannot be read as rules may still be run on one request.
  const bpf::Readable<bpf::Verdict> verdict = bpf::interpret(gate.program->code, request);
  return verdict ? std::optional(*verdict == bpf::Verdict::allow) : std::nullopt;
}

std::string doubt_about(const Gate& gate) { return gate.meaning ? gate.doubt : gate.meaning.error().why; }

}  // namespace

Effective effective(const Observed& observed) {
  Effective result{device::Table::everything(), true, {}};
  bool unread = false;
  for (const Gate& gate : observed.gates) {
    unread = unread || !gate.meaning;
    if (gate.meaning) {
      result.table = result.table & *gate.meaning;
    }
    if (result.exact && (!gate.meaning || !gate.doubt.empty())) {
      result.exact = false;
      result.why = name_of(gate) + ": " + doubt_about(gate);
    }
  }
  // Where nothing is let through anyway, what is unclear does not matter.
  if (!result.exact && result.table.allows_nothing()) {
    result.exact = true;
    result.why.clear();
  }
  if (!result.exact && unread) {
    result.table = device::Table();
  }
  return result;
}

Answer judge(const Observed& observed, const device::Request& request) {
  Answer answer;
  for (const Gate& gate : observed.gates) {
    const std::optional<bool> allowed = allows(gate, request);
    if (allowed == false) {
      return {Answer::Kind::deny, name_of(gate)};
    }
    if (!allowed && answer.kind == Answer::Kind::allow) {
      answer = {Answer::Kind::unknown, name_of(gate) + ": " + doubt_about(gate)};
    }
  }
  return answer;
}

std::vector<std::string> names_of_unclear(const Observed& observed, const device::Request& request) {
  std::vector<std::string> names;
  for (const Gate& gate : observed.gates) {
    if (!allows(gate, request)) {
      names.push_back(name_of(gate));
    }
  }
  return names;
}

std::string name_of(const Gate& gate) {
  const bool is_cgroup = gate.where.starts_with('/');
  std::string name = (is_cgroup ? gate.hierarchy == Hierarchy::v1 ? "v1:" : "v2:" : "") + gate.where;
  if (gate.program && gate.program->id) {
    name += (name.empty() ? "program:" : " program:") + std::to_string(gate.program->id->value);
  }
  return gate.owner.empty() ? name : name + " (" + gate.owner + ")";
}

}  // namespace hf::container
