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

Result<Access> parse_access(std::string_view text);  // "rwm" in any order, none twice
std::string to_string(Access access);                // in the kernel's order: r, w, m

// Which of the seven combinations of r, w and m a filter lets through. A filter that has "r" and "w" of a device as two
// rules refuses O_RDWR, so the meaning of a filter is a set of combinations and not of bits.
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
  // Every combination made of bits of `access`: what an allow rule grants.
  static constexpr AccessSet within(Access access) {
    return matching([access](Access request) { return contains(access, request); });
  }
  // Every combination that has a bit of `access`: what a deny rule refuses in cgroup v1.
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

// Kernel: open() asks for r, w or rw, mknod() for m alone; no call asks for m together with another bit
// (include/linux/device_cgroup.h).
inline constexpr AccessSet kAskable =
    AccessSet::exactly(Access::mknod) | AccessSet::within(Access::read | Access::write);

}  // namespace hf::device
