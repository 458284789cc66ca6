// ContainerHandle: one running container, held by descriptors of its first process and its cgroups. Everything that
// acts on a container takes this, never a pid or a path, because those may be reused a moment later.
#pragma once

#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/container/container.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/sweep.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"

namespace hf::kernel {

class ContainerHandle {
 public:
  // Opens all of it and checks that it belongs together. Fails with no_such_process where the container has ended, or
  // the pid of its first process belongs to another process now.
  static Result<ContainerHandle> open(const Host& host, const container::Container& container);

  // To be called again after use: is it still the same process, alive, in the same cgroups and mount namespace?
  [[nodiscard]] Result<void> check() const;

  [[nodiscard]] const ProcessHandle& process() const { return process_; }

  // The cgroups of its first process. They decide about its devices, and may be shared with other containers.
  [[nodiscard]] const CgroupsOfProcess& actual() const { return *actual_; }
  // The cgroups that belong to the container alone, from the outside in. Only they may be changed. There are none where
  // its process was moved elsewhere.
  [[nodiscard]] const std::vector<CgroupsPtr>& own() const { return own_; }

  // For setns(2) and openat(2). They are not kept open, because that would keep the container's file systems mounted.
  [[nodiscard]] Result<Fd> open_mount_namespace() const;
  [[nodiscard]] Result<Fd> open_root() const;

 private:
  ContainerHandle() = default;
  Result<void> open_own(const Host& host, const container::Container& container);

  ProcessHandle process_;
  std::int64_t started_ticks_ = 0;
  std::uint64_t mount_namespace_ = 0;
  std::string lines_;  // of /proc/PID/cgroup
  CgroupsPtr actual_;  // mostly one of own_
  std::vector<CgroupsPtr> own_;
};

// Owned by the guard of the container, and by a survey.
using ContainerHandlePtr = std::shared_ptr<const ContainerHandle>;

}  // namespace hf::kernel
