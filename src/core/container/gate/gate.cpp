#include "core/container/gate/gate.h"

#include "core/bpf/interpret.h"

namespace hf::container {
namespace {

// The verdict of one gate on a request that the gates before it let through; nullopt where it is unknown.
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

// Whether the gate lets through a request that a gate before it refused; nullopt as above.
std::optional<bool> overrules(const Gate& gate, const device::Request& request) {
  if (!gate.may_override) {
    return false;
  }
  if (gate.meaning) {
    return gate.overrides.allows(request);
  }
  if (!gate.program || gate.program->code.empty()) {
    return std::nullopt;
  }
  const bpf::Readable<bpf::Verdict> verdict = bpf::interpret(gate.program->code, request, {}, bpf::Verdict::deny);
  return verdict ? std::optional(*verdict == bpf::Verdict::allow) : std::nullopt;
}

std::string doubt_about(const Gate& gate) { return gate.meaning ? gate.doubt : gate.meaning.error().why; }

}  // namespace

device::Rule rule_for(const ShieldEntry& entry) {
  const device::Device& device = entry.device;
  return {{device.kind, device::Span{device.major, device.major}, device::Span{device.minor, device.minor}},
          entry.access};
}

Effective effective(const Observed& observed) {
  Effective result{device::Table::everything(), true, {}};
  bool unread = false;
  bool may_be_overruled = false;  // by a gate that cannot be read
  for (const Gate& gate : observed.gates) {
    unread = unread || !gate.meaning;
    may_be_overruled = may_be_overruled || (!gate.meaning && gate.may_override);
    if (gate.meaning) {
      const device::Table refused = gate.may_override ? gate.overrides - result.table : device::Table();
      result.table = (result.table & *gate.meaning) | refused;
    }
    if (result.exact && (!gate.meaning || !gate.doubt.empty())) {
      result.exact = false;
      result.why = name_of(gate) + ": " + doubt_about(gate);
    }
  }
  // Where nothing is let through anyway, an unclear gate does not matter.
  if (!result.exact && result.table.allows_nothing() && !may_be_overruled) {
    result.exact = true;
    result.why.clear();
  }
  if (!result.exact && unread) {
    result.table = device::Table();
  }
  return result;
}

Answer judge(const Observed& observed, const device::Request& request) {
  using Kind = Answer::Kind;
  Answer answer;
  for (const Gate& gate : observed.gates) {
    // An unknown verdict may be either one: then this gate decides only if it answers the same to both.
    const std::optional<bool> if_allowed = answer.kind == Kind::deny ? overrules(gate, request) : allows(gate, request);
    const std::optional<bool> if_denied = answer.kind == Kind::unknown ? overrules(gate, request) : if_allowed;
    if (if_allowed && if_allowed == if_denied) {
      const bool was_refused = answer.kind == Kind::deny;
      if (*if_allowed) {
        answer = {};
      } else if (!was_refused) {
        answer = {Kind::deny, name_of(gate)};
      }
    } else if (answer.kind != Kind::unknown) {
      answer = {Kind::unknown, name_of(gate) + ": " + doubt_about(gate)};
    }
  }
  return answer;
}

std::vector<std::string> names_of_unclear(const Observed& observed, const device::Request& request) {
  std::vector<std::string> names;
  for (const Gate& gate : observed.gates) {
    if (!allows(gate, request) || !overrules(gate, request)) {
      names.push_back(name_of(gate));
    }
  }
  return names;
}

unsigned depth_of(const Gate& gate) { return gate.cgroup ? depth_of(*gate.cgroup) : 0; }

std::string name_of(const Gate& gate) {
  const bool is_cgroup = gate.where.starts_with('/');
  std::string name = (is_cgroup ? gate.hierarchy == Hierarchy::v1 ? "v1:" : "v2:" : "") + gate.where;
  if (gate.program && gate.program->id) {
    name += (name.empty() ? "program:" : " program:") + std::to_string(gate.program->id->value);
  }
  return gate.owner.empty() ? name : name + " (" + gate.owner + ")";
}

}  // namespace hf::container
