// Random: random rules and requests for tests. They use few numbers, so that they overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "core/device/device.h"
#include "core/device/oci_rules.h"
#include "core/device/rule.h"
#include "core/device/v1_list.h"

namespace hf::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return std::uint32_t(engine_() % limit); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

  device::Kind kind() { return one_in(3) ? device::Kind::block : device::Kind::character; }
  device::Access access() { return device::Access(1 + below(7)); }

  std::optional<device::Span> number_or_any(std::uint32_t limit) {
    if (one_in(4)) {
      return std::nullopt;
    }
    const std::uint32_t number = below(limit);
    return device::Span{number, number};
  }

  std::optional<device::Span> span_or_any(std::uint32_t limit) {
    std::optional<device::Span> span = number_or_any(limit);
    if (span && one_in(3)) {
      span->last = one_in(4) ? device::kLastNumber : span->first + below(limit);
    }
    return span;
  }

  device::Rule v1_rule(std::uint32_t majors, std::uint32_t minors) {
    return {{kind(), number_or_any(majors), number_or_any(minors)}, access(), device::Match::within};
  }

  device::Rule rule(std::uint32_t majors, std::uint32_t minors) {
    return {{kind(), span_or_any(majors), span_or_any(minors)}, access(), device::Match::within};
  }

  device::RuleSet rules(std::uint32_t most, std::uint32_t majors, std::uint32_t minors) {
    device::RuleSet rules;
    for (std::uint32_t count = below(most + 1); count > 0; --count) {
      rules.push_back(rule(majors, minors));
    }
    return rules;
  }

  device::Request request(std::uint32_t majors, std::uint32_t minors) {
    return {{kind(), below(majors), below(minors)}, access()};
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace hf::test
