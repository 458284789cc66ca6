// Thread: settings of the calling thread.
#pragma once

namespace hf::kernel {

// Blocks all signals in this thread, because another thread of the program handles them.
void block_all_signals();
void name_thread(const char* name);  // as ps -L shows it

}  // namespace hf::kernel
