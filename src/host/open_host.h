// OpenHost: access to this host: its files and cgroups, its device programs, and the prober from inside containers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/result.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/filters.h"
#include "kernel/container/node_prober.h"
#include "kernel/files/host.h"

namespace hf::host {

struct OpenHost {
  const kernel::Host& host;
  kernel::Filters& filters;
  kernel::NodeProber& prober;
  std::int64_t now = 0;  // seconds since 1970
  std::chrono::milliseconds probe_timeout = kernel::kProbeTimeout;
};

// Opens this host on first use: commands that only read a program from a file do not need it.
class HostOpener {
 public:
  HostOpener() = default;
  explicit HostOpener(const OpenHost& open) : open_(open) {}  // one that is open already
  HostOpener(const HostOpener&) = delete;
  HostOpener& operator=(const HostOpener&) = delete;

  Result<OpenHost*> get();

 private:
  std::optional<kernel::Host> host_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::optional<kernel::Filters> filters_;
  std::unique_ptr<kernel::NodeProber> prober_;
  std::optional<OpenHost> open_;
};

}  // namespace hf::host
