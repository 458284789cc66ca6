// Policy: what may be done about a loss, for which containers and classes of devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/container.h"

namespace hf::container {

// observe: look on and tell. harden: also tell systemd beforehand what is owed. heal: also give back what was lost.
// lock: also keep every other writer out, where the kernel can (cgroup v2, no containers within).
enum class Mode : std::uint8_t { observe, harden, heal, lock };
std::string to_string(Mode mode);
Result<Mode> parse_mode(std::string_view text);

// Every word that is given must fit; globs as fnmatch(3) means them. A label is the image's word as much as anybody's:
// it can make a container less looked after, never better off.
struct Match {
  std::optional<std::string> device_class;
  std::optional<std::string> engine;
  std::optional<std::string> name_space;  // of the pod, or containerd's
  std::optional<std::string> container;   // name, pod/container, or id
  std::map<std::string, std::string> labels;
};

struct PolicyRule {
  Match match;
  Mode mode = Mode::heal;
};

// When somebody takes away what we give back, again and again.
struct Limits {
  unsigned burst = 500;                            // heals of one container at once
  unsigned per_second = 50;                        // and in the long run
  std::chrono::milliseconds longest_wait{10'000};  // between two heals, when it does not end
};

// automatic: below every cgroup but the root. with_root: also for containers directly below the root cgroup, where the
// shield is asked about every device that any process of the host is refused.
enum class ShieldUse : std::uint8_t { off, automatic, with_root };
std::string to_string(ShieldUse use);  // "off", "auto", "root"
Result<ShieldUse> parse_shield_use(std::string_view text);

struct Policy {
  Mode mode = Mode::heal;
  ShieldUse shield = ShieldUse::automatic;
  std::vector<PolicyRule> rules;  // the first that fits counts
  Limits limits;
};

Mode mode_for(const Policy& policy, const Container& container, const std::string& device_class);

}  // namespace hf::container
