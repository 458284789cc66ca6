#include "host/open_host.h"

#include "kernel/files/clock.h"

namespace hf::host {

Result<OpenHost*> HostOpener::get() {
  if (!open_) {
    host_ = TRY(kernel::open_host());
    bpf_ = kernel::open_kernel_bpf();
    filters_.emplace(*host_, *bpf_);
    prober_ = kernel::open_node_prober(*host_);
    constexpr std::int64_t kMilliseconds = 1000;
    open_.emplace(*host_, *filters_, *prober_, kernel::wall_now() / kMilliseconds);
  }
  return &*open_;
}

}  // namespace hf::host
