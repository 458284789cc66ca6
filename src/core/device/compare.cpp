#include "core/device/compare.h"

#include "core/device/shortest.h"

namespace hf::device {
namespace {

AccessSet extra_access(AccessSet mine, AccessSet theirs) {
  const AccessSet more = (mine - theirs) & kAskable;
  Access bits = Access::none;
  for (const Access bit : {Access::mknod, Access::read, Access::write}) {
    bits = more.allows(bit) ? bits | bit : bits;
  }
  const Access both = Access::read | Access::write;
  if (contains(bits, both) && !more.allows(both)) {
    return more;  // r and w each alone, but not together: two rules
  }
  if ((bits & both) == Access::none && more.allows(both)) {
    return AccessSet::within(bits) | AccessSet::exactly(both);
  }
  return AccessSet::within(bits);
}

}  // namespace

Difference compare(const Table& left, const Table& right) {
  return {shortest_rules(Table::combine(left, right, extra_access)),
          shortest_rules(Table::combine(right, left, extra_access))};
}

}  // namespace hf::device
