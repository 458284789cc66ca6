// Region: a set of (major, minor) pairs, cut into rectangles. What the analyser knows about the devices on a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/device/rule.h"

namespace hf::bpf {

enum class Field : std::uint8_t { major, minor };

struct Rectangle {
  device::Span major;
  device::Span minor;

  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

// The rectangles are disjoint and sorted; the majors of any two are the same or disjoint.
class Region {
 public:
  static Region everything();

  [[nodiscard]] bool empty() const { return rectangles_.empty(); }
  [[nodiscard]] std::size_t size() const { return rectangles_.size(); }
  [[nodiscard]] const std::vector<Rectangle>& rectangles() const { return rectangles_; }
  [[nodiscard]] device::Span bounds(Field field) const;  // of a region that is not empty

  // Takes the part whose field lies in the span out of this region and returns it.
  Region extract(Field field, const device::Span& span);

  // The union: pairs in both are kept once.
  void merge(Region other);

 private:
  Region extract_majors(const device::Span& span);
  Region extract_minors(const device::Span& span);
  void cut_at(std::uint32_t major);
  void cut_like(const Region& model);
  [[nodiscard]] bool fits_between_bands(const Region& other) const;

  std::vector<Rectangle> rectangles_;
};

}  // namespace hf::bpf
