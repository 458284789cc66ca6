#include "core/report/demo_report.h"

#include <algorithm>

namespace hf::report {

Spread spread_of(std::vector<std::uint64_t> durations) {
  if (durations.empty()) {
    return {};
  }
  std::ranges::sort(durations);
  const auto rank = [&durations](std::size_t percent) {
    const std::size_t place = (durations.size() * percent + 99) / 100;
    return durations[std::max<std::size_t>(place, 1) - 1];
  };
  return {durations.size(), rank(50), rank(99), durations.back()};
}

std::uint64_t DemoContainer::attack_count() const {
  std::uint64_t all = 0;
  for (const auto& [description, count] : attacks) {
    all += count;
  }
  return all;
}

bool DemoReport::has_held() const {
  return !containers.empty() && std::ranges::all_of(containers, [](const DemoContainer& it) {
    return it.attack_count() > 0 && it.repaired == it.attack_count();
  });
}

}  // namespace hf::report
