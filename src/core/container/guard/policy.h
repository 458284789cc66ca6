// Policy: what the guard may do about lost access, by container and device class.
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

// observe: only report. harden: also configure systemd beforehand with what is owed. heal: also restore what was lost.
// lock: also keep every other writer out, where the kernel can (cgroup v2, no nested containers).
enum class Mode : std::uint8_t { observe, harden, heal, lock };
std::string to_string(Mode mode);
Result<Mode> parse_mode(std::string_view text);

// Every field that is set must match; globs are those of fnmatch(3). Labels are untrusted, as an image can set them: a
// label may reduce what the guard does for a container, but never gives it more access.
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

// How often the guard heals when another writer undoes every repair.
struct Limits {
  unsigned burst = 500;                            // heals of one container at once
  unsigned per_second = 50;                        // heals of one container, in the long run
  std::chrono::milliseconds longest_wait{10'000};  // between two heals, while the conflict goes on
};

// automatic: attached to any cgroup but the root. with_root: also for containers directly below the root cgroup, where
// the shield runs for every device request of the host that is refused.
enum class ShieldUse : std::uint8_t { off, automatic, with_root };
std::string to_string(ShieldUse use);  // "off", "auto", "root"
Result<ShieldUse> parse_shield_use(std::string_view text);

struct Policy {
  Mode mode = Mode::heal;
  ShieldUse shield = ShieldUse::automatic;
  std::vector<PolicyRule> rules;  // the first that matches counts
  Limits limits;
};

Mode mode_for(const Policy& policy, const Container& container, const std::string& device_class);

}  // namespace hf::container
