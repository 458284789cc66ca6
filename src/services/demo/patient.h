// Patient: the container of the demonstration: started, given a GPU behind its runtime's back, removed in the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/ledger/ledger.h"
#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "kernel/cgroup.h"
#include "kernel/contain.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "services/demo/runtime.h"
#include "services/demo/tally.h"

namespace hf::demo {

struct Gpu {
  std::vector<container::WantedNode> nodes;  // the unit first
  bool is_stand_in = false;
};
// The first GPU of the host with its control nodes, or nodes with NVIDIA's numbers that no driver stands behind: to
// open them gives EPERM where the cgroup refuses, and ENXIO where it does not.
Gpu find_gpu(const kernel::Host& host);

// The ledger's folder, which a machine without holdfast does not have: gone in the end where it is empty.
class LedgerFolder {
 public:
  static Result<LedgerFolder> make();

  LedgerFolder(LedgerFolder&&) noexcept = default;
  LedgerFolder& operator=(LedgerFolder&&) = delete;
  LedgerFolder(const LedgerFolder&) = delete;
  LedgerFolder& operator=(const LedgerFolder&) = delete;
  ~LedgerFolder();

 private:
  LedgerFolder() = default;

  std::vector<std::string> made_;  // the innermost first
};

struct Surroundings {
  const kernel::Host& host;
  kernel::Filters& filters;
  std::string folder;  // ours alone
  Gpu gpu;
};

class Patient {
 public:
  // With the first of the runtimes that can, else by our own means.
  static Result<std::unique_ptr<Patient>> start(const Surroundings& around, container::Hierarchy hierarchy,
                                                const std::vector<Runtime>& runtimes);

  Patient(const Patient&) = delete;
  Patient& operator=(const Patient&) = delete;
  ~Patient();

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] container::Hierarchy hierarchy() const { return hierarchy_; }
  [[nodiscard]] const std::optional<Runtime>& runtime() const { return runtime_; }  // absent: our own means
  [[nodiscard]] std::string launcher() const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const kernel::Cgroup& cgroup() const;  // that decides about its devices
  [[nodiscard]] const Tally& tally() const { return *tally_; }
  // The filter it had before it was given the GPU, on v2. Held, so that it keeps its id.
  [[nodiscard]] const std::optional<kernel::Program>& first_filter() const { return first_filter_; }

  // Puts the GPU into it, as NVIDIA's hook does: nodes, rules, and nothing in its config. The ledger, whose folder must
  // be there, says that it is owed.
  Result<void> give_gpu();

  // The words with which its runtime is called, and what the runtime has to see when it is.
  [[nodiscard]] std::vector<std::string> runtime_words(const std::vector<std::string>& more) const;
  [[nodiscard]] std::function<bool()> runtime_view() const;

 private:
  Patient(const Surroundings& around, container::Hierarchy hierarchy);

  Result<void> prepare();
  Result<void> start_with(const Runtime& runtime);
  Result<void> start_by_ourselves();
  Result<void> hold_cgroups();
  [[nodiscard]] Result<void> write_ledger() const;
  void remove_ledger() const;
  void remove_container();
  // As engines do it: below a cgroup of its own, so that there is a parent for the shield.
  [[nodiscard]] std::string parent_path() const { return "/" + id_ + "-parent"; }
  [[nodiscard]] std::string cgroup_path() const { return parent_path() + "/" + id_; }
  void remove_cgroups() const;

  const Surroundings& around_;
  container::Hierarchy hierarchy_;
  std::string id_;
  std::string folder_;
  std::optional<Runtime> runtime_;
  std::vector<std::string> notes_;
  kernel::OwnProgram program_;
  container::Pid pid_;
  bool is_our_child_ = false;
  kernel::Fd life_;  // the program inside ends when this is closed
  kernel::Fd life_inside_;
  std::optional<Tally> tally_;
  kernel::CgroupsOfProcess cgroups_;
  std::optional<kernel::Program> first_filter_;
};

}  // namespace hf::demo
