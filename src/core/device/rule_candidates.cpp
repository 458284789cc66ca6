#include "core/device/rule_candidates.h"

#include <array>
#include <cstdint>

namespace hf::device {
namespace {

// The accesses that one rule may grant in a cell: bit n stands for the access n, bit 0 for "rw exactly".
using Grants = std::uint8_t;

constexpr Grants grants_of(AccessSet allowed) {
  unsigned grants = 0;
  for (unsigned access = 1; access <= unsigned(Access::all); ++access) {
    if ((AccessSet::within(Access(access)) - allowed).empty()) {
      grants |= 1U << access;
    }
  }
  const bool only_together = allowed.allows(kReadWrite) && (grants >> unsigned(kReadWrite) & 1U) == 0;
  return Grants(grants | (only_together ? 1U << kExactly : 0U));
}

constexpr std::array<Grants, 256> kGrants = [] {
  std::array<Grants, 256> table{};
  for (unsigned bits = 0; bits < table.size(); ++bits) {
    table[bits] = grants_of(AccessSet::of_bits(bits));
  }
  return table;
}();

bool granted(AccessSet allowed, unsigned grant) { return (kGrants[allowed.bits()] >> grant & 1U) != 0; }

bool is_largest(AccessSet allowed, unsigned grant) {
  if (grant == kExactly) {
    return true;
  }
  for (unsigned larger = 1; larger <= unsigned(Access::all); ++larger) {
    if (larger != grant && contains(Access(larger), Access(grant)) && granted(allowed, larger)) {
      return false;
    }
  }
  return true;
}

bool grants_all(const Row& row, const Span& minor, unsigned grant) {
  auto segment = std::ranges::upper_bound(row, minor.first, {}, &Segment::first) - 1;
  for (; segment != row.end() && segment->first <= minor.last; ++segment) {
    if (!granted(segment->allowed, grant)) {
      return false;
    }
  }
  return true;
}

Span widest_minors(const Row& row, const Span& minor, unsigned grant) {
  auto low = std::size_t(std::ranges::upper_bound(row, minor.first, {}, &Segment::first) - row.begin()) - 1;
  std::size_t high = low;
  while (low > 0 && granted(row[low - 1].allowed, grant)) {
    --low;
  }
  while (high + 1 < row.size() && granted(row[high + 1].allowed, grant)) {
    ++high;
  }
  return {row[low].first, last_of(row, high)};
}

Candidate candidate_around(const Plane& plane, const Need& need) {
  Candidate candidate{need.band, need.band, widest_minors(plane[need.band].row, need.minor, need.grant), need.grant};
  while (candidate.first_band > 0 && grants_all(plane[candidate.first_band - 1].row, candidate.minor, need.grant)) {
    --candidate.first_band;
  }
  while (candidate.last_band + 1 < plane.size() &&
         grants_all(plane[candidate.last_band + 1].row, candidate.minor, need.grant)) {
    ++candidate.last_band;
  }
  return candidate;
}

// In a small plane candidates also include rectangles that grow around no single need: every run of bands with the
// minors they share.
constexpr std::size_t kSmallPlane = 24;

std::vector<Span> granted_minors(const Row& row, unsigned grant) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!granted(row[i].allowed, grant)) {
      continue;
    }
    if (i > 0 && granted(row[i - 1].allowed, grant)) {
      spans.back().last = last_of(row, i);
    } else {
      spans.push_back({row[i].first, last_of(row, i)});
    }
  }
  return spans;
}

std::vector<Span> shared(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> spans;
  for (const Span& x : a) {
    for (const Span& y : b) {
      if (overlap(x, y)) {
        spans.push_back({std::max(x.first, y.first), std::min(x.last, y.last)});
      }
    }
  }
  return spans;
}

void add_shared_candidates(const Plane& plane, unsigned grant, std::vector<Candidate>& candidates) {
  for (std::size_t first = 0; first < plane.size(); ++first) {
    std::vector<Span> minors = granted_minors(plane[first].row, grant);
    for (std::size_t last = first + 1; last < plane.size() && !minors.empty(); ++last) {
      minors = shared(minors, granted_minors(plane[last].row, grant));
      for (const Span& minor : minors) {
        candidates.push_back({first, last, minor, grant});
      }
    }
  }
}

}  // namespace

std::vector<Need> needs_of(const Plane& plane) {
  std::vector<Need> needs;
  for (std::size_t band = 0; band < plane.size(); ++band) {
    const Row& row = plane[band].row;
    for (std::size_t segment = 0; segment < row.size(); ++segment) {
      for (unsigned grant = 0; grant <= unsigned(Access::all); ++grant) {
        if (granted(row[segment].allowed, grant) && is_largest(row[segment].allowed, grant)) {
          needs.push_back({band, {row[segment].first, last_of(row, segment)}, grant});
        }
      }
    }
  }
  return needs;
}

std::vector<Candidate> candidates_for(const Plane& plane, const std::vector<Need>& needs) {
  std::vector<Candidate> candidates;
  for (const Need& need : needs) {
    candidates.push_back(candidate_around(plane, need));
  }
  for (unsigned grant = 0; grant <= unsigned(Access::all) && plane.size() <= kSmallPlane; ++grant) {
    add_shared_candidates(plane, grant, candidates);
  }
  std::ranges::sort(candidates);
  candidates.erase(std::ranges::unique(candidates).begin(), candidates.end());
  return candidates;
}

std::vector<Need> cut_at_candidates(const std::vector<Need>& needs, const std::vector<Candidate>& candidates) {
  std::vector<std::vector<std::uint32_t>> cuts(needs.size());
  for (const Candidate& candidate : candidates) {
    for_needs_reached(needs, candidate, [&](std::size_t index) {
      const Span& minor = needs[index].minor;
      if (candidate.minor.first > minor.first) {
        cuts[index].push_back(candidate.minor.first);
      }
      if (candidate.minor.last < minor.last) {
        cuts[index].push_back(candidate.minor.last + 1);
      }
    });
  }
  std::vector<Need> pieces;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    std::ranges::sort(cuts[i]);
    cuts[i].erase(std::ranges::unique(cuts[i]).begin(), cuts[i].end());
    Need piece = needs[i];
    for (const std::uint32_t cut : cuts[i]) {
      pieces.push_back({piece.band, {piece.minor.first, cut - 1}, piece.grant});
      piece.minor.first = cut;
    }
    pieces.push_back(piece);
  }
  return pieces;
}

bool reaches(const Candidate& candidate, const Need& need) {
  const bool suffices = candidate.grant == need.grant || (candidate.grant != kExactly && need.grant != kExactly &&
                                                          contains(Access(candidate.grant), Access(need.grant)));
  return suffices && candidate.first_band <= need.band && need.band <= candidate.last_band &&
         overlap(candidate.minor, need.minor);
}

}  // namespace hf::device
