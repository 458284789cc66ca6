#include "core/resource/preference.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.h"

namespace hf::resource {
namespace {

using device::Inventory;
using device::Unit;

constexpr int kPerLink = 100;
constexpr int kPerStep = 10;                // of the common way in the PCI tree
constexpr std::size_t kMostTried = 20'000;  // sets of devices; with more of them one is grown step by step

// The physical devices of an offer with what is free of them.
struct Free {
  const Unit* unit = nullptr;
  std::optional<int> numa;
  std::vector<std::string> ids;  // free ones, sorted
  std::size_t used = 0;          // replicas that are taken, and those that this choice took
};

struct Score {
  std::size_t numas = 0;
  int closeness = 0;

  [[nodiscard]] bool is_better_than(const Score& other) const {
    return std::tie(numas, other.closeness) < std::tie(other.numas, closeness);
  }
};

class Chooser {
 public:
  Chooser(const Offer& offer, const Choice& choice, const Inventory& inventory, Spread spread)
      : offer_(offer), choice_(choice), spread_(spread) {
    for (const Unit& unit : inventory.units) {
      units_.emplace(key_of(unit), &unit);
    }
  }

  Result<std::vector<std::string>> choose() {
    TRY(collect());
    const bool has_replicas = offer_.replicas > 1;
    while (chosen_.size() < choice_.count) {
      if (has_replicas) {
        take_replica();
      } else {
        take_devices();
      }
    }
    std::ranges::sort(chosen_);
    return chosen_;
  }

 private:
  Result<void> collect() {
    const std::set<std::string> must(choice_.must_include.begin(), choice_.must_include.end());
    std::set<std::string> all(choice_.available.begin(), choice_.available.end());
    all.insert(must.begin(), must.end());
    if (must.size() > choice_.count || all.size() < choice_.count) {
      return fail(std::errc::invalid_argument, "prefer devices of " + offer_.resource + ": " +
                                                   std::to_string(choice_.count) + " are wanted of " +
                                                   std::to_string(all.size()) + ", with " +
                                                   std::to_string(must.size()) + " that must be among them");
    }
    std::map<std::string, std::size_t> index;  // of the unit in free_
    for (const OfferedDevice& device : offer_.devices) {
      const auto [place, is_new] = index.emplace(device.unit, free_.size());
      if (is_new) {
        const auto unit = units_.find(device.unit);
        free_.push_back({unit == units_.end() ? nullptr : unit->second, device.numa, {}, 0});
      }
      Free& free = free_[place->second];
      if (must.contains(device.id)) {
        chosen_.push_back(device.id);
        taken_.push_back(place->second);
      }
      if (all.erase(device.id) == 0 || must.contains(device.id)) {
        ++free.used;
      } else {
        free.ids.push_back(device.id);
      }
    }
    if (!all.empty()) {
      return fail(std::errc::invalid_argument,
                  "prefer devices of " + offer_.resource + ": there is no device " + quote(*all.begin()));
    }
    std::ranges::for_each(free_, [](Free& free) { std::ranges::sort(free.ids); });
    measure();
    return {};
  }

  void measure() {
    closeness_.assign(free_.size(), std::vector<int>(free_.size()));
    for (std::size_t i = 0; i < free_.size(); ++i) {
      for (std::size_t j = 0; j < free_.size(); ++j) {
        const Unit* const a = free_[i].unit;
        const Unit* const b = free_[j].unit;
        closeness_[i][j] = a != nullptr && b != nullptr ? closeness(*a, *b) : 0;
      }
    }
  }

  // One more replica: of the least or of the most used device.
  void take_replica() {
    std::size_t best = free_.size();
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (free_[i].ids.empty()) {
        continue;
      }
      const bool is_better =
          best == free_.size() ||
          (spread_ == Spread::distributed ? free_[i].used < free_[best].used : free_[i].used > free_[best].used);
      best = is_better ? i : best;
    }
    take(best);
  }

  // MIG devices have a unit in common; each counts as a device of its own.
  void take_devices() {
    const std::size_t wanted = choice_.count - chosen_.size();
    std::vector<std::size_t> slots;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      slots.insert(slots.end(), free_[i].ids.size(), i);
    }
    const std::vector<std::size_t> set =
        combinations(slots.size(), wanted) <= kMostTried ? best_of_all(slots, wanted) : grow(slots, wanted);
    std::ranges::for_each(set, [this](std::size_t index) { take(index); });
  }

  void take(std::size_t index) {
    Free& free = free_[index];
    chosen_.push_back(free.ids.front());
    free.ids.erase(free.ids.begin());
    ++free.used;
    taken_.push_back(index);
  }

  static std::size_t combinations(std::size_t of, std::size_t wanted) {
    std::size_t count = 1;
    for (std::size_t i = 0; i < wanted && count <= kMostTried; ++i) {
      count = count * (of - i) / (i + 1);
    }
    return count;
  }

  // With the devices that are chosen already.
  [[nodiscard]] Score score(const std::vector<std::size_t>& set) const {
    std::vector<std::size_t> all = taken_;
    Score result;
    std::set<std::optional<int>> numas;
    std::ranges::for_each(all, [&](std::size_t index) { numas.insert(free_[index].numa); });
    for (const std::size_t index : set) {
      numas.insert(free_[index].numa);
      result.closeness += closeness_to(all, index);
      all.push_back(index);
    }
    result.numas = numas.size();
    return result;
  }

  [[nodiscard]] int closeness_to(const std::vector<std::size_t>& set, std::size_t index) const {
    int sum = 0;
    for (const std::size_t other : set) {
      sum += closeness_[index][other];
    }
    return sum;
  }

  [[nodiscard]] std::vector<std::size_t> best_of_all(const std::vector<std::size_t>& slots, std::size_t wanted) const {
    std::vector<std::size_t> positions(wanted);
    std::ranges::generate(positions, [next = std::size_t(0)]() mutable { return next++; });
    std::vector<std::size_t> best;
    std::optional<Score> best_score;
    for (;;) {
      std::vector<std::size_t> set;
      std::ranges::for_each(positions, [&](std::size_t position) { set.push_back(slots[position]); });
      const Score now = score(set);
      if (!best_score || now.is_better_than(*best_score)) {
        best_score = now;
        best = set;
      }
      // The next combination in order.
      std::size_t i = wanted;
      while (i > 0 && positions[i - 1] == slots.size() - wanted + i - 1) {
        --i;
      }
      if (i == 0) {
        return best;
      }
      ++positions[i - 1];
      for (std::size_t j = i; j < wanted; ++j) {
        positions[j] = positions[j - 1] + 1;
      }
    }
  }

  // From every device as the first one: always the device that adds most. The best of these sets.
  [[nodiscard]] std::vector<std::size_t> grow(const std::vector<std::size_t>& slots, std::size_t wanted) const {
    std::vector<std::size_t> best;
    std::optional<Score> best_score;
    for (std::size_t first = 0; first < slots.size(); ++first) {
      if (first > 0 && slots[first] == slots[first - 1]) {
        continue;
      }
      std::vector<std::size_t> left = slots;
      std::vector<std::size_t> set = {slots[first]};
      left.erase(left.begin() + std::ptrdiff_t(first));
      while (set.size() < wanted) {
        add_closest(set, left);
      }
      const Score now = score(set);
      if (!best_score || now.is_better_than(*best_score)) {
        best_score = now;
        best = set;
      }
    }
    return best;
  }

  void add_closest(std::vector<std::size_t>& set, std::vector<std::size_t>& left) const {
    std::vector<std::size_t> all = taken_;
    all.insert(all.end(), set.begin(), set.end());
    std::set<std::optional<int>> numas;
    std::ranges::for_each(all, [&](std::size_t index) { numas.insert(free_[index].numa); });
    std::size_t best = 0;
    std::optional<Score> best_score;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Score now{numas.contains(free_[left[i]].numa) ? 0U : 1U, closeness_to(all, left[i])};
      if (!best_score || now.is_better_than(*best_score)) {
        best_score = now;
        best = i;
      }
    }
    set.push_back(left[best]);
    left.erase(left.begin() + std::ptrdiff_t(best));
  }

  const Offer& offer_;
  const Choice& choice_;
  Spread spread_;
  std::map<std::string, const Unit*> units_;
  std::vector<Free> free_;
  std::vector<std::vector<int>> closeness_;  // of each two in free_
  std::vector<std::size_t> taken_;           // indices in free_ of what is chosen
  std::vector<std::string> chosen_;
};

}  // namespace

Result<std::vector<std::string>> prefer(const Offer& offer, const Choice& choice, const Inventory& inventory,
                                        Spread spread) {
  return Chooser(offer, choice, inventory, spread).choose();
}

int closeness(const Unit& a, const Unit& b) {
  int result = 0;
  if (const auto links = a.nvlinks.find(b.pci); links != a.nvlinks.end()) {
    result += kPerLink * int(links->second);
  }
  const std::vector<std::string_view> way_a = split(a.bus, '/');
  const std::vector<std::string_view> way_b = split(b.bus, '/');
  for (std::size_t i = 0; i < std::min(way_a.size(), way_b.size()) && way_a[i] == way_b[i] && !way_a[i].empty(); ++i) {
    result += kPerStep;
  }
  return result + (a.numa && a.numa == b.numa ? 1 : 0);
}

}  // namespace hf::resource
