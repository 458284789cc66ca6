#include "core/base/suggest.h"

#include <algorithm>
#include <cstddef>

#include "core/base/text.h"

namespace hf {
namespace {

constexpr std::size_t kLongest = 64;  // longer names are no typing errors of each other

// How many characters must be added, removed, replaced or swapped with their neighbour.
std::size_t difference(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before(other.size() + 1);
  std::vector<std::size_t> last(other.size() + 1);
  std::vector<std::size_t> now(other.size() + 1);
  for (std::size_t j = 0; j <= other.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= one.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[other.size()];
}

}  // namespace

std::string nearest(std::string_view text, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, text.size() / 4) + 1;
  for (const std::string& candidate : candidates) {
    if (text.size() <= kLongest && candidate.size() <= kLongest && candidate != text) {
      const std::size_t differs = difference(text, candidate);
      if (differs < least && differs < candidate.size()) {
        least = differs;
        best = candidate;
      }
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates) {
  const std::string best = nearest(text, candidates);
  return best.empty() ? std::string() : "; did you mean " + best + "?";
}

std::string suggest(std::string_view text, const std::vector<std::string>& candidates) {
  const std::string meant = did_you_mean(text, candidates);
  return meant.empty() ? "; there are " + join(candidates, ", ") : meant;
}

}  // namespace hf
