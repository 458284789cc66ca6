#include "core/resource/slice.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::resource {
namespace {

// The same name whenever this host writes its slices: what an earlier instance left is replaced.
std::string slice_name(const Pool& pool, std::size_t index) {
  constexpr std::size_t kLongest = 253;
  const std::string end = "-" + pool.driver + "-" + std::to_string(index);
  return pool.node.substr(0, kLongest - end.size()) + end;
}

std::vector<Slice> slices_of(const Pool& pool, const std::vector<PublishedDevice>& devices) {
  std::vector<Slice> slices;
  for (std::size_t first = 0; first < devices.size(); first += kDevicesPerSlice) {
    const auto begin = devices.begin() + std::ptrdiff_t(first);
    const std::size_t size = std::min(kDevicesPerSlice, devices.size() - first);
    slices.push_back({slice_name(pool, slices.size()), 0, 0, {begin, begin + std::ptrdiff_t(size)}});
  }
  for (Slice& slice : slices) {
    slice.count = slices.size();
  }
  return slices;
}

const FoundSlice* find(const std::vector<FoundSlice>& found, const std::string& name) {
  const auto at = std::ranges::find_if(found, [&name](const FoundSlice& one) { return one.slice.name == name; });
  return at == found.end() ? nullptr : &*at;
}

bool is_current(const Pool& pool, const std::vector<Slice>& wanted, const std::vector<FoundSlice>& found) {
  if (found.size() != wanted.size()) {
    return false;
  }
  return std::ranges::all_of(wanted, [&](Slice slice) {
    const FoundSlice* const there = find(found, slice.name);
    slice.generation = found.front().slice.generation;
    return there != nullptr && there->is_readable && there->pool == pool.node && there->slice == slice &&
           (pool.node_uid.empty() || there->owner_uid == pool.node_uid);
  });
}

}  // namespace

Result<void> check_driver_name(const std::string& name) {
  constexpr std::size_t kLongest = 63;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  bool is_plain = !name.empty() && name.size() <= kLongest;
  for (const std::string_view part : split(name, '.')) {
    is_plain = is_plain && !part.empty() && kLetters.find(part.front()) != std::string_view::npos &&
               kLetters.find(part.back()) != std::string_view::npos &&
               part.find_first_not_of(std::string(kLetters) + "-") == std::string_view::npos;
  }
  return is_plain ? Result<void>()
                  : fail(std::errc::invalid_argument,
                         quote(name) + " is no name of a driver: it wants a DNS name of at most 63 characters, like " +
                             "gpu.holdfast.dev");
}

std::vector<SliceStep> plan_slices(const Pool& pool, const std::vector<PublishedDevice>& devices,
                                   const std::vector<FoundSlice>& found) {
  std::vector<Slice> wanted = slices_of(pool, devices);
  if (is_current(pool, wanted, found)) {
    return {};
  }
  std::uint64_t generation = 0;
  for (const FoundSlice& there : found) {
    generation = std::max(generation, there.slice.generation);
  }
  std::vector<SliceStep> steps;
  const auto remove_where = [&](const auto& is_surplus) {
    for (const FoundSlice& there : found) {
      if (is_surplus(there)) {
        steps.push_back({SliceAction::remove, {there.slice.name, 0, 0, {}}, there.resource_version});
      }
    }
  };
  // Kubernetes: the pool of a slice never changes.
  const auto is_foreign = [&pool](const FoundSlice& there) { return there.pool != pool.node; };
  remove_where(is_foreign);
  for (Slice& slice : wanted) {
    slice.generation = generation + 1;
    const FoundSlice* const there = find(found, slice.name);
    const bool is_kept = there != nullptr && !is_foreign(*there);
    steps.push_back(
        {is_kept ? SliceAction::replace : SliceAction::create, slice, is_kept ? there->resource_version : ""});
  }
  remove_where([&](const FoundSlice& there) {
    return !is_foreign(there) && std::ranges::find(wanted, there.slice.name, &Slice::name) == wanted.end();
  });
  return steps;
}

}  // namespace hf::resource
