// RuleCandidates: what a list of rules must grant for a plane of a table, and the rectangles that its rules may be.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <vector>

#include "core/device/rule.h"
#include "core/device/table.h"

namespace hf::device {

inline constexpr unsigned kExactly = 0;  // as a grant: "rw exactly"; any other grant is the Access with its number
inline constexpr Access kReadWrite = Access::read | Access::write;

// Some minors of a band, and what must be granted there.
struct Need {
  std::size_t band;
  Span minor;
  unsigned grant;
};

// A rectangle in which a rule may grant this everywhere.
struct Candidate {
  std::size_t first_band;
  std::size_t last_band;
  Span minor;
  unsigned grant;

  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

std::vector<Need> needs_of(const Plane& plane);                                             // sorted by band
std::vector<Candidate> candidates_for(const Plane& plane, const std::vector<Need>& needs);  // sorted, each once
std::vector<Need> cut_at_candidates(const std::vector<Need>& needs, const std::vector<Candidate>& candidates);

bool reaches(const Candidate& candidate, const Need& need);

// Calls visit(need index) for the needs in the candidate's bands. Needs are sorted by band, so these are one run of
// them.
template <class Visit>
void for_needs_reached(const std::vector<Need>& needs, const Candidate& candidate, Visit visit) {
  auto need = std::ranges::lower_bound(needs, candidate.first_band, {}, &Need::band);
  for (; need != needs.end() && need->band <= candidate.last_band; ++need) {
    if (reaches(candidate, *need)) {
      visit(std::size_t(need - needs.begin()));
    }
  }
}

}  // namespace hf::device
