// AddMissing: adds values to a list that holds each of them once, in the order in which they came.
#pragma once

#include <algorithm>
#include <vector>

namespace hf {

template <class Value>
void add_missing(std::vector<Value>& all, const std::vector<Value>& more) {
  for (const Value& value : more) {
    if (std::ranges::find(all, value) == all.end()) {
      all.push_back(value);
    }
  }
}

}  // namespace hf
