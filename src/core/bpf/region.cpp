#include "core/bpf/region.h"

#include <algorithm>
#include <iterator>

namespace hf::bpf {
namespace {

using device::kLastNumber;
using device::Span;

bool sorts_before(const Rectangle& a, const Rectangle& b) {
  return a.major.first != b.major.first ? a.major.first < b.major.first : a.minor.first < b.minor.first;
}

}  // namespace

Region Region::everything() {
  Region region;
  region.rectangles_.push_back({});
  return region;
}

Span Region::bounds(Field field) const {
  if (field == Field::major) {
    return {rectangles_.front().major.first, rectangles_.back().major.last};
  }
  Span bounds{kLastNumber, 0};
  for (const Rectangle& rectangle : rectangles_) {
    bounds.first = std::min(bounds.first, rectangle.minor.first);
    bounds.last = std::max(bounds.last, rectangle.minor.last);
  }
  return bounds;
}

Region Region::extract(Field field, const Span& span) {
  return field == Field::major ? extract_majors(span) : extract_minors(span);
}

// Creates a boundary between major - 1 and major.
void Region::cut_at(std::uint32_t major) {
  const auto first = std::ranges::lower_bound(rectangles_, major, {}, [](const Rectangle& r) { return r.major.last; });
  if (first == rectangles_.end() || first->major.first >= major) {
    return;
  }
  const auto end = std::find_if(first, rectangles_.end(), [&](const Rectangle& r) { return r.major != first->major; });
  std::vector<Rectangle> upper(first, end);
  for (Rectangle& rectangle : upper) {
    rectangle.major.first = major;
  }
  for (auto rectangle = first; rectangle != end; ++rectangle) {
    rectangle->major.last = major - 1;
  }
  rectangles_.insert(end, upper.begin(), upper.end());
}

Region Region::extract_majors(const Span& span) {
  cut_at(span.first);
  if (span.last != kLastNumber) {
    cut_at(span.last + 1);
  }
  const auto major_first = [](const Rectangle& r) { return r.major.first; };
  const auto begin = std::ranges::lower_bound(rectangles_, span.first, {}, major_first);
  const auto end = std::ranges::upper_bound(begin, rectangles_.end(), span.last, {}, major_first);
  Region taken;
  taken.rectangles_.assign(begin, end);
  rectangles_.erase(begin, end);
  return taken;
}

Region Region::extract_minors(const Span& span) {
  Region taken;
  std::vector<Rectangle> rest;
  rest.reserve(rectangles_.size() + 2);
  for (const Rectangle& rectangle : rectangles_) {
    const Span& minor = rectangle.minor;
    if (!device::overlap(minor, span)) {
      rest.push_back(rectangle);
      continue;
    }
    if (minor.first < span.first) {
      rest.push_back({rectangle.major, {minor.first, span.first - 1}});
    }
    taken.rectangles_.push_back(
        {rectangle.major, {std::max(minor.first, span.first), std::min(minor.last, span.last)}});
    if (minor.last > span.last) {
      rest.push_back({rectangle.major, {span.last + 1, minor.last}});
    }
  }
  rectangles_ = std::move(rest);
  return taken;
}

// Whether no band of this region overlaps the bands of the other or lies between them.
bool Region::fits_between_bands(const Region& other) const {
  const Span majors = other.bounds(Field::major);
  const auto first =
      std::ranges::lower_bound(rectangles_, majors.first, {}, [](const Rectangle& r) { return r.major.last; });
  return first == rectangles_.end() || first->major.first > majors.last;
}

void Region::cut_like(const Region& model) {
  const Span majors = bounds(Field::major);
  for (const Rectangle& rectangle : model.rectangles_) {
    if (!device::overlap(rectangle.major, majors)) {
      continue;
    }
    cut_at(rectangle.major.first);
    if (rectangle.major.last != kLastNumber) {
      cut_at(rectangle.major.last + 1);
    }
  }
}

void Region::merge(Region other) {
  if (other.empty()) {
    return;
  }
  if (rectangles_.empty()) {
    *this = std::move(other);
    return;
  }
  if (other.size() > size()) {
    std::swap(rectangles_, other.rectangles_);
  }
  if (fits_between_bands(other)) {
    const auto place = std::ranges::upper_bound(rectangles_, other.rectangles_.front(), sorts_before);
    rectangles_.insert(place, other.rectangles_.begin(), other.rectangles_.end());
    return;
  }
  cut_like(other);
  other.cut_like(*this);
  std::vector<Rectangle> both;
  both.reserve(rectangles_.size() + other.rectangles_.size());
  std::ranges::merge(rectangles_, other.rectangles_, std::back_inserter(both), sorts_before);
  rectangles_ = std::move(both);

  // Neighbours in one band that overlap or touch become one.
  std::size_t kept = 0;
  for (std::size_t i = 1; i < rectangles_.size(); ++i) {
    Rectangle& last = rectangles_[kept];
    const Rectangle& next = rectangles_[i];
    if (last.major == next.major && (last.minor.last == kLastNumber || next.minor.first <= last.minor.last + 1)) {
      last.minor.last = std::max(last.minor.last, next.minor.last);
    } else {
      rectangles_[++kept] = next;
    }
  }
  rectangles_.resize(kept + 1);
}

}  // namespace hf::bpf
