// StrongId: a number or name that cannot be mistaken for another kind of number or name.
#pragma once

#include <compare>

namespace hf {

template <class Tag, class T>
struct StrongId {
  T value{};

  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace hf
