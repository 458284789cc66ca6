#include "core/device/compare.h"

#include "core/device/shortest.h"

namespace hf::device {
namespace {

AccessSet letters_more(AccessSet mine, AccessSet theirs) {
  const AccessSet more = (mine - theirs) & kAskable;
  Access letters = Access::none;
  for (const Access letter : {Access::mknod, Access::read, Access::write}) {
    letters = more.allows(letter) ? letters | letter : letters;
  }
  const Access both = Access::read | Access::write;
  if (contains(letters, both) && !more.allows(both)) {
    return more;  // r and w apart, but not together: two rules
  }
  if ((letters & both) == Access::none && more.allows(both)) {
    return AccessSet::within(letters) | AccessSet::exactly(both);
  }
  return AccessSet::within(letters);
}

}  // namespace

Difference compare(const Table& left, const Table& right) {
  return {shortest_rules(Table::combine(left, right, letters_more)),
          shortest_rules(Table::combine(right, left, letters_more))};
}

}  // namespace hf::device
