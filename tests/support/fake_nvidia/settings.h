// Settings: how the fake libraries behave, from the environment of the process that loads them.
#pragma once

#include <csignal>
#include <cstdlib>

#include <unistd.h>

namespace hf::fake_nvidia {

inline int setting(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

inline void hang_or_crash() {
  while (setting("HOLDFAST_FAKE_HANG", 0) != 0) {
    ::usleep(1000);
  }
  if (setting("HOLDFAST_FAKE_CRASH", 0) != 0) {
    std::abort();
  }
}

}  // namespace hf::fake_nvidia
