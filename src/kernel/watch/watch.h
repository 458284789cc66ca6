// Watch: reports everything that may affect the device access of containers, through one descriptor to wait for.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/container/guard/event.h"
#include "core/container/guard/tier.h"
#include "kernel/cgroup/sweep.h"
#include "kernel/files/fd.h"
#include "kernel/watch/cgroup_writes.h"
#include "kernel/watch/host_changes.h"
#include "kernel/watch/trace.h"

namespace hf::kernel {

// Uses the best tier that works on this host, or at most the requested one. Opening never fails, because polling always
// works. The host must outlive this object.
class Watch {
 public:
  static Watch open(const Host& host, Bpf& bpf, std::optional<container::Tier> at_most);

  [[nodiscard]] const container::Tiers& tiers() const { return tiers_; }
  [[nodiscard]] int descriptor() const { return all_.get(); }

  // Returns the last write to one of its v1 files that was seen before the cgroups were added.
  std::optional<container::Event> add(const CgroupsPtr& cgroups, const ProcessHandle& first_process);
  void remove(const CgroupsOfProcess& cgroups);
  void add_directory(const Host& host, const std::string& path);  // of evidence; a missing one is skipped

  // Takes all events since the last call. Costs a few system calls where there are none.
  void take(std::vector<container::Event>& events);
  // Adds what can only be read of the writer of a v1 file while it is running.
  void describe_writer(container::Event& event) const;
  // Reads every cgroup and compares it with its last known state.
  void sweep(std::vector<container::Event>& events);

 private:
  struct V1File {
    container::CgroupId cgroup;
    std::string path;            // of the cgroup in its hierarchy
    bool allows = false;         // devices.allow, or devices.deny
    std::set<CgroupsKey> users;  // containers in it or below it
  };

  explicit Watch(Bpf& bpf) : sweep_(bpf) {}

  void open_v2(std::optional<container::Tier> at_most);
  void open_v1(const Host& host, std::optional<container::Tier> at_most);
  void open_drivers();
  void wait_for(int descriptor, std::uint64_t tag);
  void add_v1_files(const Cgroup& cgroup, const CgroupsKey& user);
  void take_v1(std::vector<container::Event>& events);
  void remember(const CgroupWrite& write);
  std::optional<container::Event> remembered_write(const Cgroup& cgroup);
  [[nodiscard]] static container::Event event_of(const CgroupWrite& write, const V1File& file);
  void take_ended(std::vector<container::Event>& events);

  struct UnknownWrite {
    CgroupWrite write;
    container::Writer writer;
  };

  Fd all_;
  container::Tiers tiers_;
  Sweep sweep_;
  std::optional<Trace> trace_;
  std::optional<CgroupWrites> v1_writes_;
  std::map<std::uint64_t, V1File> v1_files_;  // by inode
  std::deque<UnknownWrite> unknown_writes_;   // the last ones to files of cgroups that were not added yet
  std::string counts_;                        // of cgroups, where no tracer reports new ones
  const Host* host_ = nullptr;
  std::optional<DriverEvents> drivers_;
  std::optional<DirectoryEvents> directories_;
  struct FirstProcess {
    Fd process;  // pidfd
    container::CgroupId cgroup;
    container::Hierarchy hierarchy = container::Hierarchy::v2;
  };
  std::map<CgroupsKey, FirstProcess> first_processes_;
};

}  // namespace hf::kernel
