// FakeBpf: bpf(2) in memory. It keeps programs and attachments by cgroup as the kernel does, and computes verdicts with
// `interpret`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "kernel/cgroup/bpf_api.h"

namespace hf::test {

class FakeBpf final : public kernel::Bpf {
 public:
  Result<kernel::AttachedPrograms> query(const kernel::Cgroup& cgroup, kernel::Reach reach) override;
  Result<kernel::Program> open(container::ProgramId id) override;
  Result<kernel::Program> load(const bpf::Code& code) override;
  Result<void> attach(const kernel::Cgroup& cgroup, const kernel::Program& program,
                      const kernel::AttachMode& mode) override;
  Result<void> detach(const kernel::Cgroup& cgroup, const kernel::Program& program, std::uint64_t revision) override;

  Result<kernel::ShieldMapPtr> create_shield_map() override;
  Result<kernel::ShieldMapPtr> open_shield_map(const kernel::Program& shield) override;
  Result<kernel::Program> load_shield(const kernel::ShieldMap& map, unsigned depth) override;

  // Attaches a program of another writer with this name and load time (seconds since 1970).
  void add(const kernel::Cgroup& cgroup, const bpf::Code& code, const std::string& name, std::int64_t loaded_at);

  // Whether a process of the cgroup may open the device.
  bool allows(const kernel::Cgroup& cgroup, const device::Request& request);

  // The same for a cgroup and those above it, innermost first: each program sees the verdict of those before it.
  bool allows(const std::vector<const kernel::Cgroup*>& line, const device::Request& request);

  // Called once, before the next attach: simulates a writer that is faster.
  std::function<void()> before_attach;
  bool forbids_opening = false;  // as with an LSM
  bool has_shields = true;       // false: as with kernels before 5.18
  std::uint64_t shield_tag = 1;  // of shields loaded from now on
  int loads = 0;

 private:
  struct Loaded {
    bpf::Code code;
    std::string name;
    std::int64_t at = 0;
    std::uint64_t tag = 0;
    kernel::ShieldMapPtr map = nullptr;  // of a shield
    unsigned depth = 0;
  };

  bool overrules(const Loaded& shield, const kernel::Cgroup& cgroup, const device::Request& request);

  std::map<std::uint32_t, Loaded> programs_;
  std::map<std::uint64_t, kernel::AttachedPrograms> attached_;
  std::map<std::uint32_t, kernel::ShieldMapPtr> maps_;
  std::uint32_t next_id_ = 1;
};

}  // namespace hf::test
