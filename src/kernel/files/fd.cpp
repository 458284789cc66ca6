#include "kernel/files/fd.h"

#include <unistd.h>

namespace hf::kernel {

Fd::~Fd() {
  if (number_ >= 0) {
    ::close(number_);
  }
}

}  // namespace hf::kernel
