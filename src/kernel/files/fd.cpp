#include "kernel/files/fd.h"

#include <sys/resource.h>
#include <unistd.h>

namespace hf::kernel {

Fd::~Fd() {
  if (number_ >= 0) {
    ::close(number_);
  }
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace hf::kernel
