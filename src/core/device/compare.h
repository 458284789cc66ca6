// Compare: where two filters differ, as rules a person can read.
#pragma once

#include "core/device/rule.h"
#include "core/device/table.h"

namespace hf::device {

struct Difference {
  RuleSet only_left;
  RuleSet only_right;

  [[nodiscard]] bool none() const { return only_left.empty() && only_right.empty(); }
};

// Finds only differences that a process could notice. The rules name the access bits that the other side lacks: where
// the left allows "rw" and the right "r", only_left has "w".
Difference compare(const Table& left, const Table& right);

}  // namespace hf::device
