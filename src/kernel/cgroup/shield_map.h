// ShieldMap: which devices the shield keeps open for which cgroups: a BPF map, or a map in memory in tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/gate/gate.h"
#include "core/device/device.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

struct ShieldKey {
  container::CgroupId cgroup;  // Kernel: cgroup ids are never reused
  unsigned depth = 0;          // of the cgroup whose shield uses the entry; shields above it ignore it
  device::Device device;

  friend auto operator<=>(const ShieldKey&, const ShieldKey&) = default;
};

class ShieldMap {
 public:
  virtual ~ShieldMap() = default;

  [[nodiscard]] virtual std::uint32_t id() const = 0;
  virtual Result<void> put(const ShieldKey& key, device::Access access) = 0;  // resets the count to 0
  virtual Result<void> remove(const ShieldKey& key) = 0;                      // succeeds where there is no such entry
  virtual Result<std::optional<container::ShieldEntry>> read(const ShieldKey& key) = 0;
  virtual Result<std::vector<ShieldKey>> list() = 0;
};
// Owned by its users: the shield of a daemon, and readers of attached programs.
using ShieldMapPtr = std::shared_ptr<ShieldMap>;

// The map in the kernel.
class KernelShieldMap final : public ShieldMap {
 public:
  static Result<std::shared_ptr<KernelShieldMap>> create();
  static Result<std::shared_ptr<KernelShieldMap>> open(std::uint32_t id);  // fails where its layout differs

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

// The code of the shield. It is loaded once for each depth of cgroups it is attached to, always with the same map.
// Kernel: it runs after the programs of the cgroups below, reads their verdict (bpf_get_retval) and may overrule it
// (bpf_set_retval).
bpf::Code shield_code(int map, unsigned depth);

// "hf_shield_3": the depth is part of a shield's name. Absent where the name is not that of a shield.
std::string shield_name(unsigned depth);
std::optional<unsigned> depth_in_shield_name(std::string_view name);

}  // namespace hf::kernel
