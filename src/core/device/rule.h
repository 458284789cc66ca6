// Rule: which accesses to which devices are allowed, in the format of the kernel's devices.list ("c 195:* rw").
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/device.h"

namespace hf::device {

inline constexpr std::uint32_t kLastNumber = std::numeric_limits<std::uint32_t>::max();

struct Span {
  std::uint32_t first = 0;
  std::uint32_t last = kLastNumber;

  [[nodiscard]] constexpr bool contains(std::uint32_t number) const { return first <= number && number <= last; }
  [[nodiscard]] constexpr bool contains(const Span& other) const { return first <= other.first && other.last <= last; }
  [[nodiscard]] constexpr bool is_point() const { return first == last; }
  friend auto operator<=>(const Span&, const Span&) = default;
};

constexpr bool overlap(const Span& a, const Span& b) { return a.first <= b.last && b.first <= a.last; }

// Absent means any.
struct Selector {
  std::optional<Kind> kind;
  std::optional<Span> major;
  std::optional<Span> minor;

  [[nodiscard]] bool contains(const Selector& other) const;
  [[nodiscard]] bool overlaps(const Selector& other) const;
  friend auto operator<=>(const Selector&, const Selector&) = default;
};

// `within`: every request made of bits of the access, as the kernel and all runtimes mean a rule.
// `exactly`: that combination and none of its parts; only filters with faulty deny rules need it.
enum class Match : std::uint8_t { within, exactly };

struct Rule {
  Selector selector;
  Access access = Access::none;
  Match match = Match::within;

  [[nodiscard]] AccessSet allowed() const;
  friend auto operator<=>(const Rule&, const Rule&) = default;
};

// A list of allow rules: a request passes if one of them, alone, covers it.
using RuleSet = std::vector<Rule>;

// "c 195:* rw", "b 8:0-15 rwm", "c 240-*:0 r", "a" or "a *:* rwm"; "exactly" may follow. Refuses numbers that no
// device can have.
Result<Rule> parse_rule(std::string_view text);
std::string to_string(const Selector& selector);
std::string to_string(const Rule& rule);

}  // namespace hf::device
