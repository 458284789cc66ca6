// ShieldMap: which devices the shield keeps open, for which cgroups. A BPF map, or one in memory in tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/cgroup_path.h"
#include "core/container/gate.h"
#include "core/device/device.h"
#include "kernel/fd.h"

namespace hf::kernel {

struct ShieldKey {
  container::CgroupId cgroup;  // Kernel: ids of cgroups are never used again
  unsigned depth = 0;          // of the cgroup whose shield may use the entry; shields above it do not
  device::Device device;

  friend auto operator<=>(const ShieldKey&, const ShieldKey&) = default;
};

class ShieldMap {
 public:
  virtual ~ShieldMap() = default;

  [[nodiscard]] virtual std::uint32_t id() const = 0;
  virtual Result<void> put(const ShieldKey& key, device::Access access) = 0;  // counts from 0
  virtual Result<void> remove(const ShieldKey& key) = 0;                      // fine where it is not there
  virtual Result<std::optional<container::ShieldEntry>> read(const ShieldKey& key) = 0;
  virtual Result<std::vector<ShieldKey>> list() = 0;
};
// Owned by its users: the shield of a daemon, and what reads attached programs.
using ShieldMapPtr = std::shared_ptr<ShieldMap>;

// The map in the kernel.
class KernelShieldMap final : public ShieldMap {
 public:
  static Result<std::shared_ptr<KernelShieldMap>> create();
  static Result<std::shared_ptr<KernelShieldMap>> open(std::uint32_t id);  // fails where its shape is another

  KernelShieldMap(Fd fd, std::uint32_t id) : fd_(std::move(fd)), id_(id) {}

  [[nodiscard]] const Fd& fd() const { return fd_; }
  [[nodiscard]] std::uint32_t id() const override { return id_; }
  Result<void> put(const ShieldKey& key, device::Access access) override;
  Result<void> remove(const ShieldKey& key) override;
  Result<std::optional<container::ShieldEntry>> read(const ShieldKey& key) override;
  Result<std::vector<ShieldKey>> list() override;

 private:
  Fd fd_;
  std::uint32_t id_ = 0;
};

// The program. It is loaded once for each depth of cgroups it is attached to, all with the same map. Kernel: it runs
// after the programs of the cgroups below, reads their verdict (bpf_get_retval) and may overrule it (bpf_set_retval).
bpf::Code shield_code(int map, unsigned depth);

// "hf_shield_3": the depth is part of a shield's name. Absent where the name is of no shield.
std::string shield_name(unsigned depth);
std::optional<unsigned> depth_in_shield_name(std::string_view name);

}  // namespace hf::kernel
