// Watch: everything that may have to do with the rights of containers, in one descriptor to wait for.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/container/event.h"
#include "core/container/tier.h"
#include "kernel/fd.h"
#include "kernel/sweep.h"
#include "kernel/trace.h"
#include "kernel/v1_writes.h"

namespace hf::kernel {

// The best tier that works here, or at most the one that is wished for. Never fails: polling always works. The host
// must stay as long as it does.
class Watch {
 public:
  static Watch open(const Host& host, Bpf& bpf, std::optional<container::Tier> at_most);

  [[nodiscard]] const container::Tiers& tiers() const { return tiers_; }
  [[nodiscard]] int descriptor() const { return all_.get(); }

  // The last write to one of its v1 files that was seen before, while nobody knew whose they are.
  std::optional<container::Event> add(const CgroupsPtr& cgroups, const ProcessHandle& first_process);
  void remove(const CgroupsOfProcess& cgroups);
  void add_folder(const Host& host, const std::string& path);  // of evidence; one that is not there is passed over

  // What has happened since. Costs a few system calls where nothing has.
  void take(std::vector<container::Event>& events);
  // What only a living process tells of the writer of a v1 file.
  void describe_writer(container::Event& event) const;
  // Looks at every cgroup itself.
  void sweep(std::vector<container::Event>& events);

 private:
  struct V1File {
    container::CgroupId cgroup;
    std::string path;            // of the cgroup in its hierarchy
    bool allows = false;         // devices.allow, or devices.deny
    std::set<CgroupsKey> users;  // who is in it or below it
  };

  explicit Watch(Bpf& bpf) : sweep_(bpf) {}

  void open_v2(std::optional<container::Tier> at_most);
  void open_v1(const Host& host, std::optional<container::Tier> at_most);
  void open_drivers();
  void wait_for(int descriptor, std::uint64_t tag);
  void add_v1_files(const Cgroup& cgroup, const CgroupsKey& user);
  void take_v1(std::vector<container::Event>& events);
  void remember(const V1Write& write);
  std::optional<container::Event> remembered_write(const Cgroup& cgroup);
  [[nodiscard]] static container::Event event_of(const V1Write& write, const V1File& file);
  void take_drivers(std::vector<container::Event>& events) const;
  void take_folders(std::vector<container::Event>& events) const;
  void take_ended(std::vector<container::Event>& events);

  struct UnknownWrite {
    V1Write write;
    container::Writer writer;
  };

  Fd all_;
  container::Tiers tiers_;
  Sweep sweep_;
  std::optional<Trace> trace_;
  std::optional<V1Writes> v1_writes_;
  std::map<std::uint64_t, V1File> v1_files_;  // by inode
  std::deque<UnknownWrite> unknown_writes_;   // the last ones to files of cgroups that nobody has added
  std::string counts_;                        // of cgroups, where nothing tells of new ones
  const Host* host_ = nullptr;
  Fd drivers_;  // netlink: the kernel's uevents
  Fd folders_;  // inotify
  struct First {
    Fd process;  // pidfd
    container::CgroupId cgroup;
    container::Hierarchy hierarchy = container::Hierarchy::v2;
  };
  std::map<CgroupsKey, First> firsts_;
};

}  // namespace hf::kernel
