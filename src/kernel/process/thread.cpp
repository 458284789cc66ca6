#include "kernel/process/thread.h"

#include <csignal>

#include <sys/prctl.h>

namespace hf::kernel {

void name_thread(const char* name) { (void)::prctl(PR_SET_NAME, name); }

void block_all_signals() {
  ::sigset_t all{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace hf::kernel
