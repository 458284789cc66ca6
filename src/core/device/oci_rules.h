// OciRules: the entries of linux.resources.devices in an OCI config, and what each implementation makes of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/rule.h"
#include "core/device/table.h"
#include "core/device/v1_list.h"

namespace hf::device {

struct OciRule {
  Verb verb = Verb::deny;
  Rule rule;  // the kind may be absent: "a"

  friend bool operator==(const OciRule&, const OciRule&) = default;
};
using OciRules = std::vector<OciRule>;

// later_wins: as the specification says: each rule adds or removes access bits, and the last rule about a bit counts.
// kernel:     as cgroup v1 applies the writes: a deny removes bits only from a rule with the same selector, "a"
//             discards all rules before it; where all is allowed by default, a deny refuses every request that has one
//             of its bits.
// runc:       as runc's v2 filter does: the same list, but a deny refuses only requests made of its bits alone, so
//             that "deny c 195:0 w" lets O_RDWR through.
enum class OciReading : std::uint8_t { later_wins, kernel, runc };

Table meaning(std::span<const OciRule> rules, OciReading reading);

}  // namespace hf::device
