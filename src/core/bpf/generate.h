// Generate: turns a table into code that decides by binary search over the major, then the minor.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/device/table.h"

namespace hf::bpf {

// The code is proven: it was analysed again and means the table.
Result<Code> generate(const device::Table& table);

// How a table becomes proven code: generate, or a cache of its results.
using Generate = std::function<Result<Code>(const device::Table&)>;

// Rules in front of a program that cannot be read: requests of the first table are allowed, of the second refused, all
// others are left to the original, which stays as it is. Fails for code that the kernel would not load again.
struct Override {
  device::Table allow;
  device::Table deny;
};
Result<Code> patch(const Code& original, const Override& override);

// Fails where code read back from the kernel could not be loaded again: maps, helpers, constant blinding.
Result<void> check_loadable_again(const Code& code);

}  // namespace hf::bpf
