#include "host/target.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/process/process.h"

namespace hf::host {
namespace {

using container::Container;

// The innermost container that a process is in.
std::vector<const Container*> containers_with(const kernel::Host& host, const std::vector<Container>& all,
                                              const std::string& pid) {
  const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(pid);
  const std::string lines = number ? kernel::read_cgroup_lines(host, {std::int32_t(*number)}) : std::string();
  const Container* innermost = nullptr;
  for (const std::string_view line : split(lines, '\n')) {
    const std::string path = container::path_in_line(line);
    for (const Container& container : all) {
      const bool is_in =
          container.cgroup != "/" && (path == container.cgroup || path.starts_with(container.cgroup + "/"));
      if (is_in && (innermost == nullptr || container.cgroup.size() > innermost->cgroup.size())) {
        innermost = &container;
      }
    }
  }
  return innermost == nullptr ? std::vector<const Container*>() : std::vector<const Container*>{innermost};
}

// Whether they are the containers of one pod with that name. A label of an image may name a pod, but only the cgroup
// has its uid.
bool are_of_pod(const std::vector<const Container*>& matches, std::string_view name) {
  const std::optional<container::Pod>& first = matches.front()->pod;
  return first && !first->uid.empty() && std::ranges::all_of(matches, [&](const Container* match) {
           return match->pod && match->pod->uid == first->uid &&
                  (name == match->pod->name || name == match->pod->name_space + "/" + match->pod->name);
         });
}

}  // namespace

Result<std::vector<const DiscoveredContainer*>> find_discovered(const kernel::Host& host, const Census& census,
                                                                const std::vector<std::string>& targets,
                                                                PodNames pods) {
  const std::vector<Container> all = census.containers();
  std::vector<const DiscoveredContainer*> found;
  for (const std::string& target : targets) {
    constexpr std::string_view kForced = "container:";
    const std::string name = target.starts_with(kForced) ? target.substr(kForced.size()) : target;
    const std::vector<const Container*> matches =
        target.starts_with("pid:") ? containers_with(host, all, target.substr(4)) : matches_of(all, name);
    if (matches.empty()) {
      return fail(std::errc::no_such_process, no_such_container(all, target));
    }
    if (matches.size() > 1 && (pods == PodNames::ambiguous || !are_of_pod(matches, name))) {
      std::vector<std::string> names;
      names.reserve(matches.size());
      for (const Container* match : matches) {
        names.push_back(title_of(*match) + " (" + short_id(match->id) + ")");
      }
      return fail(std::errc::invalid_argument, "container " + quote(target) + " may be any of: " + join(names, ", "));
    }
    for (const Container* match : matches) {
      found.push_back(&census.discovered_containers[std::size_t(match - all.data())]);
    }
  }
  return found;
}

std::string no_such_container(const std::vector<Container>& all, const std::string& target) {
  constexpr std::size_t kMostShown = 12;
  std::vector<std::string> names;
  for (const Container& container : all) {
    if (!container.is_sandbox) {
      names.push_back(unambiguous_name_of(container));
    }
  }
  const std::string meant = did_you_mean(target, names);
  const std::size_t left_out = names.size() > kMostShown ? names.size() - kMostShown : 0;
  names.resize(names.size() - left_out);
  const std::string running = names.empty() ? "none runs here"
                                            : "running: " + join(names, ", ") +
                                                  (left_out > 0 ? " and " + std::to_string(left_out) + " more" : "");
  return "no container " + quote(target) + (meant.empty() ? "; " : meant + " ") + running;
}

}  // namespace hf::host
