// CPU lists: a list that is parsed is rendered and parsed again unchanged.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/cpu/cpu_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf::cpu;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hf::Result<CpuSet> set = parse_cpu_set(text);
  if (!set) {
    check(!set.error().message.empty(), "an error has a message");
    return 0;
  }
  const std::string rendered = to_string(*set);
  const hf::Result<CpuSet> again = parse_cpu_set(rendered);
  check(again && *again == *set, "a round trip changes nothing");
  check(to_string(*again) == rendered, "there is one way to write a set");
  check(set->empty() == rendered.empty(), "only the empty set is rendered as nothing");
  check(set->overlaps(*set) == !set->empty(), "a set overlaps itself");
  check(!set->contains(kLastCpu + 1), "no CPU lies beyond the last");
  return 0;
}
