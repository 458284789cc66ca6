#include "core/report/verdict.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/base/shell.h"
#include "core/base/text.h"

namespace hf::report {
namespace {

using container::State;

constexpr std::size_t kMostDevices = 4;  // in a headline

bool is_critical(const Finding& finding) { return finding.severity == Severity::critical; }

std::string counted(std::size_t count, const std::string& one, const std::string& several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

std::string capitalised(std::string text) {
  if (!text.empty()) {
    text.front() = char(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text;
}

// Of a container the findings of the doctor have no subject: "lost the right to open /dev/nvidia0".
Verdict verdict_from(const Finding& finding) {
  Verdict verdict;
  verdict.level = is_critical(finding) ? Level::critical : Level::warning;
  verdict.headline = finding.container.empty() ? capitalised(finding.what) : finding.subject + " " + finding.what;
  verdict.because = finding.because;
  verdict.code = finding.code;
  verdict.container = finding.container;
  verdict.cure = finding.cure;
  verdict.needs_all_cures = finding.needs_all_cures;
  return verdict;
}

std::vector<std::string> inaccessible_of(const ContainerStatus& status) {
  std::vector<std::string> paths;
  for (const container::NodeState& node : *status.nodes) {
    if (node.is_inaccessible()) {
      paths.push_back(node.owed->path);
    }
  }
  if (paths.size() > kMostDevices) {
    const std::size_t more = paths.size() - kMostDevices;
    paths.resize(kMostDevices);
    paths.back() += " and " + std::to_string(more) + " more";
  }
  return paths;
}

// A container that the doctor has not examined since it lost something.
Verdict verdict_from(const ContainerStatus& status) {
  Verdict verdict;
  verdict.level = Level::critical;
  const std::vector<std::string> paths = inaccessible_of(status);
  verdict.headline =
      title_of(*status.container) + " cannot use " + (paths.empty() ? "what it is owed" : join(paths, ", "));
  const auto bad = std::ranges::find_if(*status.nodes, &container::NodeState::is_inaccessible);
  verdict.because = bad == status.nodes->end() ? std::string() : bad->diagnosis.text;
  verdict.container = status.container->id.value;
  verdict.cure = {"holdfast heal " + argument_of(*status.container)};
  return verdict;
}

// Counts for the rest of the headline. A container counts once, by its state.
class Tally {
 public:
  explicit Tally(const Snapshot& snapshot) {
    for (const ContainerStatus& status : snapshot.containers) {
      ++states_[status.state];
    }
  }

  [[nodiscard]] std::size_t of(State state) const {
    const auto found = states_.find(state);
    return found == states_.end() ? 0 : found->second;
  }

  [[nodiscard]] std::size_t lacking() const { return of(State::lost) + of(State::stale) + of(State::partial); }

  // Without the container that the headline names.
  [[nodiscard]] std::string rest(std::size_t lacking, std::size_t at_risk) const {
    std::vector<std::string> parts;
    if (lacking > 0) {
      parts.push_back(counted(lacking, "more container lacks something", "more containers lack something"));
    }
    if (at_risk > 0) {
      parts.push_back(std::to_string(at_risk) + " at risk");
    }
    if (of(State::unknown) > 0) {
      parts.push_back(std::to_string(of(State::unknown)) + " cannot be judged");
    }
    if (of(State::ok) > 0) {
      parts.push_back(std::to_string(of(State::ok)) + " fine");
    }
    if (of(State::not_owed) > 0) {
      parts.push_back(counted(of(State::not_owed), "asks for nothing", "ask for nothing"));
    }
    return join(parts, ", ");
  }

 private:
  std::map<State, std::size_t> states_;
};

bool is_about_all_inaccessible(const Finding& finding, const ContainerStatus& status) {
  return std::ranges::all_of(*status.nodes, [&finding](const container::NodeState& node) {
    return !node.is_inaccessible() || std::ranges::find(finding.nodes, node.owed->path) != finding.nodes.end();
  });
}

// The doctor's judgement of what this container lacks, once it has examined it: a helper device may be a warning only.
const Finding* judgement_of(const Snapshot& snapshot, const ContainerStatus& status) {
  const auto found = std::ranges::find_if(*snapshot.findings, [&status](const Finding& finding) {
    return finding.severity == Severity::warning && finding.container == status.container->id.value &&
           is_about_all_inaccessible(finding, status);
  });
  return found == snapshot.findings->end() ? nullptr : &*found;
}

// Lacks something that no finding explains yet.
const ContainerStatus* first_unjudged(const Snapshot& snapshot) {
  const auto found = std::ranges::find_if(snapshot.containers, [&snapshot](const ContainerStatus& status) {
    return lacks_something(status.state) && judgement_of(snapshot, status) == nullptr;
  });
  return found == snapshot.containers.end() ? nullptr : &*found;
}

State state_in(const Snapshot& snapshot, const std::string& id) {
  const auto found = std::ranges::find_if(
      snapshot.containers, [&id](const ContainerStatus& status) { return status.container->id.value == id; });
  return id.empty() || found == snapshot.containers.end() ? State::not_owed : found->state;
}

const Finding* first_of(const Snapshot& snapshot, Severity severity) {
  const std::vector<Finding>& findings = *snapshot.findings;
  const auto found = std::ranges::find(findings, severity, &Finding::severity);
  return found == findings.end() ? nullptr : &*found;
}

Verdict blind_verdict(const Snapshot& snapshot) {
  Verdict verdict;
  verdict.level = Level::critical;
  verdict.headline = "Blind: nothing can be promised now";
  verdict.because = snapshot.why_blind.empty() ? "nothing is watched" : snapshot.why_blind;
  return verdict;
}

Verdict risk_verdict(const Tally& tally) {
  Verdict verdict;
  verdict.level = Level::warning;
  const std::size_t risk = tally.of(State::at_risk);
  const std::size_t unknown = tally.of(State::unknown);
  verdict.headline = risk > 0 ? counted(risk, "container is at risk", "containers are at risk")
                              : counted(unknown, "container cannot be judged", "containers cannot be judged");
  verdict.because = risk > 0 ? "the next reload or update takes a device away" : "";
  return verdict;
}

Verdict warning_verdict(const Snapshot& snapshot, const Tally& tally) {
  const auto lacking = std::ranges::find_if(
      snapshot.containers, [](const ContainerStatus& status) { return lacks_something(status.state); });
  const Finding* const warning =
      lacking == snapshot.containers.end() ? first_of(snapshot, Severity::warning) : judgement_of(snapshot, *lacking);
  if (warning != nullptr) {
    return verdict_from(*warning);
  }
  if (tally.of(State::at_risk) + tally.of(State::unknown) > 0) {
    return risk_verdict(tally);
  }
  return {.level = Level::good,
          .headline = "All is fine",
          .because = snapshot.containers.empty() ? "no container runs here" : "every container has what it is owed",
          .code = "",
          .container = "",
          .cure = {},
          .needs_all_cures = false,
          .rest = ""};
}

}  // namespace

std::string to_string(Level level) {
  switch (level) {
    case Level::good: return "good";
    case Level::warning: return "warning";
    case Level::critical: return "critical";
  }
  return "";
}

bool lacks_something(State state) { return state == State::lost || state == State::stale || state == State::partial; }

State state_with(State by_nodes, const std::vector<const Finding*>& findings) {
  const bool cannot_work = std::ranges::any_of(findings, [](const Finding* finding) { return is_critical(*finding); });
  if (!cannot_work || lacks_something(by_nodes)) {
    return by_nodes;
  }
  return by_nodes == State::not_owed ? State::lost : State::partial;
}

std::string argument_of(const container::Container& container) {
  return quoted_for_shell(container::unambiguous_name_of(container));
}

Verdict verdict_of(const Snapshot& snapshot) {
  const Tally tally(snapshot);
  if (snapshot.is_blind) {
    return blind_verdict(snapshot);
  }
  const Finding* const critical = first_of(snapshot, Severity::critical);
  const ContainerStatus* const lacking = first_unjudged(snapshot);
  Verdict verdict = critical != nullptr  ? verdict_from(*critical)
                    : lacking != nullptr ? verdict_from(*lacking)
                                         : warning_verdict(snapshot, tally);
  const State named = state_in(snapshot, verdict.container);
  verdict.rest = tally.rest(tally.lacking() - (lacks_something(named) ? 1 : 0),
                            tally.of(State::at_risk) - (named == State::at_risk ? 1 : 0));
  return verdict;
}

}  // namespace hf::report
