// Require: ends a benchmark with one line where something it needs fails.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/result.h"

namespace hf::bench {

[[noreturn]] inline void die(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_short_name, why.c_str());
  std::exit(2);
}

template <class T>
T require(Result<T> result) {
  if (!result) {
    die(result.error().message);
  }
  return take(std::move(result));
}

}  // namespace hf::bench
