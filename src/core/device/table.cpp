#include "core/device/table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace hf::device {
namespace {

using Combine = AccessSet (*)(AccessSet, AccessSet);

void append(Row& row, std::uint32_t first, AccessSet allowed) {
  if (row.empty() || row.back().allowed != allowed) {
    row.push_back({first, allowed});
  }
}

void append(Plane& plane, std::uint32_t first, Row row) {
  if (plane.empty() || plane.back().row != row) {
    plane.push_back({first, std::move(row)});
  }
}

// Walks two sorted lists of ranges together: visit(first, index in a, index in b) for each common piece.
template <class Ranges, class Visit>
void walk_both(const Ranges& a, const Ranges& b, Visit visit) {
  std::size_t i = 0;
  std::size_t j = 0;
  std::uint32_t first = 0;
  while (true) {
    visit(first, i, j);
    const std::uint32_t last = std::min(last_of(a, i), last_of(b, j));
    if (last == kLastNumber) {
      return;
    }
    first = last + 1;
    i += i + 1 < a.size() && a[i + 1].first == first ? 1 : 0;
    j += j + 1 < b.size() && b[j + 1].first == first ? 1 : 0;
  }
}

Plane combine_planes(const Plane& a, const Plane& b, Combine f) {
  Plane plane;
  walk_both(a, b, [&](std::uint32_t major, std::size_t i, std::size_t j) {
    Row row;
    walk_both(a[i].row, b[j].row, [&](std::uint32_t minor, std::size_t k, std::size_t l) {
      append(row, minor, f(a[i].row[k].allowed, b[j].row[l].allowed));
    });
    append(plane, major, std::move(row));
  });
  return plane;
}

// Union of overlapping spans with their sets, by counting how many spans allow each combination at each point.
class RowSweep {
 public:
  void add(const Span& span, AccessSet allowed) {
    events_.push_back({span.first, allowed, +1});
    if (span.last != kLastNumber) {
      events_.push_back({span.last + 1, allowed, -1});
    }
  }

  Row finish() {
    std::ranges::sort(events_, {}, &Event::at);
    Row row;
    append(row, 0, AccessSet());
    std::array<int, 8> depth{};
    for (std::size_t i = 0; i < events_.size();) {
      const std::uint32_t at = events_[i].at;
      for (; i < events_.size() && events_[i].at == at; ++i) {
        count(depth, events_[i]);
      }
      if (at == 0) {
        row.clear();
      }
      append(row, at, present(depth));
    }
    events_.clear();
    return row;
  }

 private:
  struct Event {
    std::uint32_t at;
    AccessSet allowed;
    int step;
  };

  static void count(std::array<int, 8>& depth, const Event& event) {
    for (unsigned combination = 1; combination < depth.size(); ++combination) {
      depth[combination] += event.allowed.allows(Access(combination)) ? event.step : 0;
    }
  }

  static AccessSet present(const std::array<int, 8>& depth) {
    unsigned bits = 0;
    for (unsigned combination = 1; combination < depth.size(); ++combination) {
      bits |= depth[combination] > 0 ? 1U << combination : 0U;
    }
    return AccessSet::of_bits(bits);
  }

  std::vector<Event> events_;
};

std::vector<std::uint32_t> major_cuts(const std::vector<const Box*>& boxes) {
  std::vector<std::uint32_t> cuts = {0};
  for (const Box* box : boxes) {
    cuts.push_back(box->major.first);
    if (box->major.last != kLastNumber) {
      cuts.push_back(box->major.last + 1);
    }
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  return cuts;
}

Plane plane_of(std::span<const Box> all, Kind kind) {
  std::vector<const Box*> boxes;
  for (const Box& box : all) {
    if (box.kind == kind && !box.allowed.empty()) {
      boxes.push_back(&box);
    }
  }
  std::ranges::sort(boxes, {}, [](const Box* box) { return box->major.first; });

  Plane plane;
  RowSweep sweep;
  std::vector<const Box*> active;
  std::size_t next = 0;
  for (const std::uint32_t cut : major_cuts(boxes)) {
    std::erase_if(active, [cut](const Box* box) { return box->major.last < cut; });
    for (; next < boxes.size() && boxes[next]->major.first == cut; ++next) {
      active.push_back(boxes[next]);
    }
    for (const Box* box : active) {
      sweep.add(box->minor, box->allowed);
    }
    append(plane, cut, sweep.finish());
  }
  return plane;
}

template <class Ranges>
const auto& range_at(const Ranges& ranges, std::uint32_t number) {
  const auto after = std::ranges::upper_bound(ranges, number, {}, [](const auto& range) { return range.first; });
  return *(after - 1);
}

Plane uniform(AccessSet allowed) { return {Band{0, Row{Segment{0, allowed}}}}; }

}  // namespace

Table::Table() : block_(uniform({})), character_(uniform({})) {}

Table Table::everything() {
  Table table;
  table.block_ = uniform(AccessSet::everything());
  table.character_ = uniform(AccessSet::everything());
  return table;
}

Table Table::of_boxes(std::span<const Box> boxes) {
  Table table;
  table.block_ = plane_of(boxes, Kind::block);
  table.character_ = plane_of(boxes, Kind::character);
  return table;
}

Table Table::of_rules(std::span<const Rule> rules) { return of_boxes(boxes_of(rules)); }

AccessSet Table::at(const Device& device) const {
  return range_at(range_at(plane(device.kind), device.major).row, device.minor).allowed;
}

Access Table::access_to(const Device& device) const {
  Access access = Access::none;
  for (const Access bit : {Access::read, Access::write, Access::mknod}) {
    access = access | (allows({device, bit}) ? bit : Access::none);
  }
  return access;
}

bool Table::allows_nothing() const { return *this == Table(); }

bool Table::contains(const Table& other) const { return (other - *this).allows_nothing(); }

Table Table::combine(const Table& a, const Table& b, Combine f) {
  Table table;
  table.block_ = combine_planes(a.block_, b.block_, f);
  table.character_ = combine_planes(a.character_, b.character_, f);
  return table;
}

Table operator|(const Table& a, const Table& b) {
  return Table::combine(a, b, [](AccessSet x, AccessSet y) { return x | y; });
}

Table operator&(const Table& a, const Table& b) {
  return Table::combine(a, b, [](AccessSet x, AccessSet y) { return x & y; });
}

Table operator-(const Table& a, const Table& b) {
  return Table::combine(a, b, [](AccessSet x, AccessSet y) { return x - y; });
}

Table askable(const Table& table) {
  return Table::combine(table, Table(), [](AccessSet x, AccessSet) { return x & kAskable; });
}

std::vector<Box> boxes_of(std::span<const Rule> rules) {
  std::vector<Box> boxes;
  for (const Rule& rule : rules) {
    for (const Kind kind : kKinds) {
      if (!rule.selector.kind || *rule.selector.kind == kind) {
        boxes.push_back(
            {kind, rule.selector.major.value_or(Span{}), rule.selector.minor.value_or(Span{}), rule.allowed()});
      }
    }
  }
  return boxes;
}

}  // namespace hf::device
