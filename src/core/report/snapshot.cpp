#include "core/report/snapshot.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/text.h"

namespace hf::report {
namespace {

constexpr std::size_t kMostName = 64;

std::string label_of(const container::Writer& writer) {
  const std::string& name = writer.service.empty() ? writer.name : writer.service;
  return name.empty() ? "unknown" : cut_to(name, kMostName);
}

}  // namespace

void Histogram::add(std::uint64_t nanoseconds) {
  const auto bucket = std::ranges::lower_bound(kBounds, nanoseconds) - kBounds.begin();
  ++counts[std::size_t(bucket)];
  sum += nanoseconds;
}

std::uint64_t Histogram::total() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t(0)); }

void Counters::count_loss(const std::string& cause, const container::Writer& writer) {
  const std::string label = label_of(writer);
  std::set<std::string> writers = {"other"};
  for (const auto& [key, count] : losses) {
    writers.insert(key.second);
  }
  ++losses[{cause, writers.contains(label) || writers.size() < kMostWriters ? label : "other"}];
}

}  // namespace hf::report
