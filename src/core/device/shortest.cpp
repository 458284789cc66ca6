#include "core/device/shortest.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "core/device/rule_candidates.h"

// A rule is a rectangle of majors × minors with an access. The list is found as logic minimisers find theirs:
//   need       a stretch of minors in a band and an access that must be granted there and is not part of a larger one;
//   candidate  the largest rectangle around a need in which that access is granted everywhere;
//   cutting    needs are cut where candidates end, so that two candidates may meet one need together;
//   choice     candidates nothing can replace first, then always the one that meets most open needs;
//   pruning    candidates all of whose needs others meet as well are dropped;
//   improving  a bounded search for a shorter choice; real filters are small enough for it to be complete.

namespace hf::device {
namespace {

class Cover {
 public:
  explicit Cover(const Plane& plane)
      : bands_(plane.size()), needs_(needs_of(plane)), candidates_(candidates_for(plane, needs_)) {
    needs_ = cut_at_candidates(needs_, candidates_);
    open_needs_left_ = needs_.size();
    met_by_.resize(needs_.size());
    meets_.resize(candidates_.size());
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      for_needs_reached(needs_, candidates_[c], [&](std::size_t need) {
        meets_[c].push_back(need);
        met_by_[need].push_back(c);
      });
    }
    times_met_.resize(needs_.size());
    chosen_.resize(candidates_.size());
    open_.resize(candidates_.size());
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      open_[c] = meets_[c].size();
    }
  }

  std::vector<Candidate> choose() {
    for (std::size_t need = 0; need < needs_.size(); ++need) {
      if (met_by_[need].size() == 1) {
        take(met_by_[need].front());
      }
    }
    while (open_needs_left_ > 0) {
      take(std::size_t(std::ranges::max_element(open_) - open_.begin()));
    }
    prune();
    std::vector<std::size_t> best;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (chosen_[c]) {
        best.push_back(c);
      }
    }
    std::vector<std::size_t> picked;
    std::ranges::fill(times_met_, 0);
    improve(picked, best);
    return tightened(best);
  }

 private:
  void take(std::size_t c) {
    if (chosen_[c]) {
      return;
    }
    chosen_[c] = true;
    for (const std::size_t need : meets_[c]) {
      if (times_met_[need]++ == 0) {
        --open_needs_left_;
        for (const std::size_t other : met_by_[need]) {
          --open_[other];
        }
      }
    }
  }

  // Cuts each chosen candidate down to what only it grants, unless it covers any number: "c 195:0" and not "c 0-195:0".
  std::vector<Candidate> tightened(const std::vector<std::size_t>& chosen) {
    std::ranges::fill(times_met_, 0);
    for (const std::size_t c : chosen) {
      std::ranges::for_each(meets_[c], [this](std::size_t need) { ++times_met_[need]; });
    }
    std::vector<Candidate> tight;
    for (const std::size_t c : chosen) {
      Candidate box = candidates_[c];
      const bool any_major = box.first_band == 0 && box.last_band + 1 == bands_;
      const bool any_minor = box.minor == Span{};
      std::optional<Candidate> needed;
      for (const std::size_t index : meets_[c]) {
        const Need& need = needs_[index];
        if (times_met_[index] > 1) {
          continue;
        }
        needed = needed ? *needed : Candidate{need.band, need.band, need.minor, box.grant};
        needed->last_band = need.band;
        needed->minor = {std::min(needed->minor.first, need.minor.first),
                         std::max(needed->minor.last, need.minor.last)};
      }
      if (!needed) {  // others grant all of it
        std::ranges::for_each(meets_[c], [this](std::size_t need) { --times_met_[need]; });
        continue;
      }
      box.first_band = any_major ? box.first_band : needed->first_band;
      box.last_band = any_major ? box.last_band : needed->last_band;
      box.minor = any_minor ? box.minor : needed->minor;
      // What is no longer covered twice now belongs to the others alone.
      for (const std::size_t index : meets_[c]) {
        const Need& need = needs_[index];
        const bool inside = box.first_band <= need.band && need.band <= box.last_band && box.minor.contains(need.minor);
        times_met_[index] -= inside ? 0 : 1;
      }
      tight.push_back(box);
    }
    return tight;
  }

  // Searches for a shorter choice, need by need, the one with the fewest candidates first; it gives up after a while.
  void improve(std::vector<std::size_t>& picked, std::vector<std::size_t>& best) {
    std::optional<std::size_t> hardest;
    for (std::size_t need = 0; need < needs_.size(); ++need) {
      if (times_met_[need] == 0 && (!hardest || met_by_[need].size() < met_by_[*hardest].size())) {
        hardest = need;
      }
    }
    if (!hardest) {
      best = picked;
      return;
    }
    for (const std::size_t c : met_by_[*hardest]) {
      if (picked.size() + 1 >= best.size() || tries_left_ < needs_.size()) {
        return;
      }
      tries_left_ -= needs_.size();
      picked.push_back(c);
      std::ranges::for_each(meets_[c], [this](std::size_t need) { ++times_met_[need]; });
      improve(picked, best);
      std::ranges::for_each(meets_[c], [this](std::size_t need) { --times_met_[need]; });
      picked.pop_back();
    }
  }

  void prune() {
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const auto met_twice = [this](std::size_t need) { return times_met_[need] > 1; };
      if (chosen_[c] && std::ranges::all_of(meets_[c], met_twice)) {
        chosen_[c] = false;
        for (const std::size_t need : meets_[c]) {
          --times_met_[need];
        }
      }
    }
  }

  std::size_t bands_;
  std::vector<Need> needs_;
  std::vector<Candidate> candidates_;
  std::vector<std::vector<std::size_t>> meets_;   // candidate → needs
  std::vector<std::vector<std::size_t>> met_by_;  // need → candidates
  std::vector<std::size_t> open_;                 // candidate → needs still open that it would meet
  std::vector<std::size_t> times_met_;
  std::vector<bool> chosen_;
  std::size_t open_needs_left_ = 0;
  std::size_t tries_left_ = 20'000;
};

std::optional<Span> absent_if_any(const Span& span) {
  return span == Span{} ? std::nullopt : std::optional<Span>(span);
}

Rule rule_of(const Plane& plane, Kind kind, const Candidate& candidate) {
  const Span major{plane[candidate.first_band].first, last_of(plane, candidate.last_band)};
  const Selector selector{kind, absent_if_any(major), absent_if_any(candidate.minor)};
  if (candidate.grant == kExactly) {
    return {selector, kReadWrite, Match::exactly};
  }
  return {selector, Access(candidate.grant), Match::within};
}

// Wildcards first, then by number; character devices before block devices of the same number.
bool comes_before(const Rule& a, const Rule& b) {
  const auto key = [](const Rule& rule) {
    return std::tuple(rule.selector.major, rule.selector.minor, rule.selector.kind == Kind::block, rule.access,
                      rule.match);
  };
  return key(a) < key(b);
}

}  // namespace

RuleSet shortest_rules(const Table& table) {
  // The kernel uses "a" only for everything; "a *:* r" written to devices.allow would allow all.
  if (askable(Table::everything() - table).allows_nothing()) {
    return rule_for_everything();
  }
  RuleSet rules;
  for (const Kind kind : kKinds) {
    const Plane& plane = table.plane(kind);
    for (const Candidate& candidate : Cover(plane).choose()) {
      rules.push_back(rule_of(plane, kind, candidate));
    }
  }
  std::ranges::sort(rules, comes_before);
  return rules;
}

RuleSet rule_for_everything() { return {Rule{{}, Access::all, Match::within}}; }

}  // namespace hf::device
