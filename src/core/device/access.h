// Access: which of read, write and mknod a rule grants, or a process asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::device {

// Numbered as the kernel numbers them (BPF_DEVCG_ACC_*); core/bpf/instruction.cpp asserts it.
enum class Access : std::uint8_t { none = 0, mknod = 1, read = 2, write = 4, all = 7 };

constexpr Access operator|(Access a, Access b) { return Access(std::uint8_t(a) | std::uint8_t(b)); }
constexpr Access operator&(Access a, Access b) { return Access(std::uint8_t(a) & std::uint8_t(b)); }
constexpr Access operator~(Access a) { return Access(~std::uint8_t(a) & std::uint8_t(Access::all)); }
constexpr bool contains(Access whole, Access part) { return (whole & part) == part; }

Result<Access> parse_access(std::string_view text);  // "rwm" in any order, no letter twice
std::string to_string(Access access);                // in the kernel's order: r, w, m

// The set of the seven combinations of r, w and m that a filter lets through. A filter that knows "r" and "w" of a
// device as two rules refuses O_RDWR, so combinations, not bits, are the meaning.
class AccessSet {
  template <class Predicate>
  static constexpr AccessSet matching(Predicate matches) {
    unsigned bits = 0;
    for (unsigned request = 1; request <= unsigned(Access::all); ++request) {
      bits |= matches(Access(request)) ? 1U << request : 0U;
    }
    return of_bits(bits);
  }

 public:
  constexpr AccessSet() = default;

  static constexpr AccessSet of_bits(unsigned bits) { return AccessSet(std::uint8_t(bits & 0xfeU)); }
  static constexpr AccessSet everything() { return of_bits(0xff); }
  static constexpr AccessSet exactly(Access access) { return of_bits(1U << unsigned(access)); }
  // Every combination made of letters of `access`: what an allow rule grants.
  static constexpr AccessSet within(Access access) {
    return matching([access](Access request) { return contains(access, request); });
  }
  // Every combination with a letter of `access` in it: what a deny rule takes, as cgroup v1 means it.
  static constexpr AccessSet touching(Access access) {
    return matching([access](Access request) { return (access & request) != Access::none; });
  }

  [[nodiscard]] constexpr bool allows(Access access) const { return (bits_ >> unsigned(access) & 1U) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint8_t bits() const { return bits_; }  // bit n is the combination Access(n)

  friend constexpr AccessSet operator|(AccessSet a, AccessSet b) { return of_bits(unsigned(a.bits_ | b.bits_)); }
  friend constexpr AccessSet operator&(AccessSet a, AccessSet b) { return of_bits(unsigned(a.bits_ & b.bits_)); }
  friend constexpr AccessSet operator-(AccessSet a, AccessSet b) { return of_bits(unsigned(a.bits_ & ~b.bits_)); }
  friend constexpr bool operator==(AccessSet, AccessSet) = default;

 private:
  constexpr explicit AccessSet(std::uint8_t bits) : bits_(bits) {}

  std::uint8_t bits_ = 0;
};

// Kernel: open() asks r, w or rw, mknod() asks m alone; no call asks for m together with another letter
// (include/linux/device_cgroup.h).
inline constexpr AccessSet kAskable =
    AccessSet::exactly(Access::mknod) | AccessSet::within(Access::read | Access::write);

}  // namespace hf::device
