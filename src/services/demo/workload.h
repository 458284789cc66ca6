// Workload: the demonstration's container: started, given a GPU without its runtime's knowledge, removed in the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/ledger/ledger.h"
#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"
#include "kernel/container/minimal_container.h"
#include "kernel/files/host.h"
#include "services/demo/runtime.h"
#include "services/demo/tally.h"

namespace hf::demo {

struct Gpu {
  std::vector<container::WantedNode> nodes;  // the GPU itself first
  bool is_stand_in = false;
};
// The first GPU of the host with its control nodes, or nodes with NVIDIA's device numbers and no driver: opening those
// fails with EPERM where the cgroup refuses, and with ENXIO where it does not.
Gpu find_gpu(const kernel::Host& host);

struct DemoSetup {
  const kernel::Host& host;
  kernel::Filters& filters;
  std::string directory;  // private to the demonstration
  Gpu gpu;
};

class Workload {
 public:
  // Started with the first of the runtimes that can, else without a runtime.
  static Result<std::unique_ptr<Workload>> start(const DemoSetup& setup, container::Hierarchy hierarchy,
                                                 const std::vector<Runtime>& runtimes);

  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  ~Workload();

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] container::Hierarchy hierarchy() const { return hierarchy_; }
  [[nodiscard]] const std::optional<Runtime>& runtime() const { return runtime_; }  // absent: started without one
  [[nodiscard]] std::string launcher() const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const kernel::Cgroup& cgroup() const;  // the one that decides about its devices
  [[nodiscard]] const Tally& tally() const { return *tally_; }
  // The filter it had before it was given the GPU, on v2. Held open, so that it keeps its id.
  [[nodiscard]] const std::optional<kernel::Program>& first_filter() const { return first_filter_; }

  // Gives it the GPU as NVIDIA's hook does: device nodes and rules, but nothing in its config. An entry in the ledger,
  // whose directory must exist, says that the GPU is owed.
  Result<void> give_gpu();

  // The command line of its runtime, and what prepares the runtime's process before exec.
  [[nodiscard]] std::vector<std::string> runtime_arguments(const std::vector<std::string>& arguments) const;
  [[nodiscard]] std::function<bool()> runtime_view() const;

 private:
  Workload(const DemoSetup& setup, container::Hierarchy hierarchy);

  Result<void> prepare();
  Result<void> start_with(const Runtime& runtime);
  Result<void> start_without_runtime();
  Result<void> hold_cgroups();
  void remove_container();
  // As with engines, the container's cgroup has a parent of its own, which the shield can be attached to.
  [[nodiscard]] std::string parent_path() const { return "/" + id_ + "-parent"; }
  [[nodiscard]] std::string cgroup_path() const { return parent_path() + "/" + id_; }
  void remove_cgroups() const;

  const DemoSetup& setup_;
  container::Hierarchy hierarchy_;
  std::string id_;
  std::string directory_;
  std::optional<Runtime> runtime_;
  std::vector<std::string> notes_;
  kernel::OwnProgram program_;
  container::Pid pid_;
  bool is_our_child_ = false;
  kernel::Fd stdin_writer_;  // the program inside ends when this is closed
  kernel::Fd stdin_inside_;
  std::optional<Tally> tally_;
  kernel::CgroupsOfProcess cgroups_;
  std::optional<kernel::Program> first_filter_;
};

}  // namespace hf::demo
