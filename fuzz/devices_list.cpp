// devices.list: a list that is parsed is written and parsed again unchanged, its shortest rules mean the same, and they
// can be granted to an empty list.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "check.h"
#include "core/device/shortest.h"
#include "core/device/v1_list.h"
#include "core/device/v1_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf::device;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hf::Result<V1List> list = parse_v1_list(text);
  if (!list) {
    check(!list.error().message.empty(), "an error has a message");
    return 0;
  }
  check(*parse_v1_list(to_string(*list)) == *list, "a round trip changes nothing");
  if (list->exceptions.size() > 64) {
    return 0;
  }
  const Table table = meaning(*list);
  check(askable(Table::of_rules(shortest_rules(table))) == askable(table), "the shortest rules mean the list");
  V1List state;
  const hf::Result<V1Plan> plan = plan_v1_grant(state, shortest_rules(table));
  check(plan.has_value(), "every list can be granted");
  for (const CgroupWrite& write : *plan) {
    state = after(std::move(state), write);
  }
  check(meaning(state).contains(askable(table)), "the grant reaches it");
  return 0;
}
