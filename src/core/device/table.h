// Table: the canonical meaning of any device filter. Two filters mean the same iff their tables are equal.
//
// For each kind, the plane of major × minor is cut into bands of majors, each band into segments of minors, each
// segment carries the set of access combinations that pass. Neighbours always differ, so a meaning has exactly
// one table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/access.h"
#include "core/device/device.h"
#include "core/device/rule.h"

namespace hf::device {

struct Box {
  Kind kind = Kind::character;
  Span major;
  Span minor;
  AccessSet allowed;
};

struct Segment {
  std::uint32_t first = 0;  // up to the next segment's first
  AccessSet allowed;

  friend bool operator==(const Segment&, const Segment&) = default;
};
using Row = std::vector<Segment>;

struct Band {
  std::uint32_t first = 0;  // up to the next band's first
  Row row;

  friend bool operator==(const Band&, const Band&) = default;
};
using Plane = std::vector<Band>;

class Table {
 public:
  Table();  // lets nothing through
  static Table everything();
  static Table of_boxes(std::span<const Box> boxes);  // the union of the boxes
  static Table of_rules(std::span<const Rule> rules);

  [[nodiscard]] AccessSet at(const Device& device) const;
  [[nodiscard]] bool allows(const Request& request) const { return at(request.device).allows(request.access); }
  [[nodiscard]] Access access_to(const Device& device) const;  // the bits that are allowed one by one
  [[nodiscard]] bool allows_nothing() const;
  [[nodiscard]] bool contains(const Table& other) const;
  [[nodiscard]] const Plane& plane(Kind kind) const { return kind == Kind::block ? block_ : character_; }

  friend Table operator|(const Table& a, const Table& b);
  friend Table operator&(const Table& a, const Table& b);
  friend Table operator-(const Table& a, const Table& b);
  friend bool operator==(const Table&, const Table&) = default;

  // The table of f(a's set, b's set), device by device.
  static Table combine(const Table& a, const Table& b, AccessSet (*f)(AccessSet, AccessSet));

 private:
  Plane block_;
  Plane character_;
};

// What the kernel can ask of a filter at all (kAskable): the part of the meaning that a process can notice.
Table askable(const Table& table);

// Every rule of a list as boxes, for Table and for other code that cuts planes.
std::vector<Box> boxes_of(std::span<const Rule> rules);

// The end of the span that starts at ranges[index].first.
template <class Ranges>
std::uint32_t last_of(const Ranges& ranges, std::size_t index) {
  return index + 1 < ranges.size() ? ranges[index + 1].first - 1 : kLastNumber;
}

}  // namespace hf::device
