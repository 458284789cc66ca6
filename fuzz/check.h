// check: what must hold for every input; a breach ends the run with the input kept.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void check(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}
