// CpuCgroup: the cgroup that decides on which CPUs a container runs, held open, on v1 or v2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/container.h"
#include "core/cpu/cpu_set.h"
#include "core/cpu/request.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// Where the controllers are mounted; "" where they are not.
struct CpuMounts {
  std::string cpuset;  // v1
  std::string cpu;     // v1
  std::string v2;
};
CpuMounts read_cpu_mounts(const Host& host);

// CPU time that a cgroup may use, in microseconds of each period.
struct CpuQuota {
  std::int64_t amount = 0;
  std::uint64_t period = 100'000;
};

class CpuCgroup {
 public:
  // Fails where the container has no cgroup of its own in that hierarchy.
  static Result<CpuCgroup> open(const Host& host, const CpuMounts& mounts, const container::Container& container);

  [[nodiscard]] bool is_v2() const { return is_v2_; }

  [[nodiscard]] bool is_alive() const;       // false once the container has ended
  [[nodiscard]] bool has_processes() const;  // on v1 also where it only has cgroups below it
  [[nodiscard]] std::uint64_t file() const;  // the inode of its cpuset.cpus; 0 where there is none
  // On v2 the inode of cpu.max.
  [[nodiscard]] std::optional<std::uint64_t> quota_file() const;

  // What it is confined to. The error is no_such_device, or no_such_file_or_directory, where the container has ended.
  [[nodiscard]] Result<cpu::CpuSet> read_cpus() const;

  // What the cgroup above it allows.
  [[nodiscard]] Result<cpu::CpuSet> read_cpus_above() const;

  // Cgroups that a container has created below its own keep their part of the CPUs, or get all where none is left. On
  // v2 the cpuset controller is enabled where it is not.
  [[nodiscard]] Result<void> write_cpus(const cpu::CpuSet& cpus) const;

  [[nodiscard]] Result<std::string> read_memory_nodes() const;        // "0-1"
  [[nodiscard]] Result<std::string> read_memory_nodes_above() const;  // that the cgroup above it allows
  [[nodiscard]] Result<void> write_memory_nodes(const std::string& nodes) const;

  // The limit of CPU time is removed: the container's own, or that of the pod's cgroup around it.
  [[nodiscard]] Result<void> remove_quota() const;
  [[nodiscard]] Result<void> remove_quota_of_pod() const;
  // A container that has a limit keeps it: another program may have changed it since.
  [[nodiscard]] Result<void> restore_quota(const CpuQuota& quota) const;

 private:
  struct Paths {
    std::string cpuset;
    std::string cpu;
  };
  void take_back_processes() const;
  [[nodiscard]] Result<void> remove_quota_in(const std::string& directory) const;

  CpuCgroup(Fd cpuset, std::string where, Fd cpu, bool is_v2)
      : cpuset_(std::move(cpuset)), where_(std::move(where)), cpu_(std::move(cpu)), is_v2_(is_v2) {}

  Fd cpuset_;
  std::string where_;
  Fd cpu_;  // none where the controller is not mounted, or the container has no cgroup of its own there
  bool is_v2_ = false;
  const Host* host_ = nullptr;  // outlives it
  Paths paths_;                 // in the hierarchies of v1
};

// What a cgroup allows, in which there are no containers of its own yet.
Result<cpu::CpuSet> read_cpus_allowed_in(const Host& host, const CpuMounts& mounts, const std::string& cgroup);

Result<cpu::CpuSet> read_online_cpus(const Host& host);
Result<cpu::CpuSet> read_nodes_with_memory(const Host& host);  // their numbers

}  // namespace hf::kernel
