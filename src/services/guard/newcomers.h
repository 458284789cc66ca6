// Newcomers: the thread that examines new containers when their first process joins its cgroup. Surveys may take long,
// and a runtime or kubelet changes a new container's rules within milliseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/config/config.h"
#include "core/container/guard/event.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "services/guard/loop_thread.h"
#include "services/guard/survey.h"

namespace hf::guard {

class Newcomers {
 public:
  // Called from the thread of Newcomers.
  struct Reports {
    std::function<void(GuardedContainerPtr)> guarded;
    std::function<void(const host::DiscoveredContainer&)> any;  // owed something or not; may be empty
  };

  Newcomers(const kernel::Host& host, config::Config config, Reports reports);
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;

  // A cgroup was created, or a process joined one.
  void examine_soon(const container::Event& event);
  void adopt(SurveyPtr survey);
  void set_config(const config::Config& config);
  LoopThread& thread() { return thread_; }

 private:
  // A cgroup that is still empty, or whose container cannot be read yet, is examined again a few times.
  struct Waiting {
    container::Hierarchy hierarchy = container::Hierarchy::v2;
    std::string path;
    std::string container;   // the container's own cgroup, according to the path
    container::Pid process;  // 0: not known, one in the cgroup is searched for
    container::Pid creator;  // the process that created the cgroup, or moved the first process into it
    std::uint64_t at = 0;    // nanoseconds of CLOCK_MONOTONIC
    std::uint64_t pause = 0;
  };

  [[nodiscard]] std::uint64_t next_due() const;
  void examine_due(std::uint64_t now);
  // False: try again.
  bool examine_one(const Waiting& waiting);
  [[nodiscard]] container::Pid creator_of(const Waiting& waiting, container::Pid process) const;
  [[nodiscard]] std::optional<container::Pid> find_process(const Waiting& waiting) const;

  const kernel::Host& host_;
  config::Config config_;
  Reports reports_;
  kernel::EventLoop loop_;
  SurveyPtr survey_;
  std::set<std::string_view> known_;  // cgroups of containers that the last survey found, in `survey_`
  std::set<std::string> examined_;    // cgroups that were examined since
  std::vector<Waiting> waiting_;
  std::atomic<std::size_t> queued_events_ = 0;  // bounded: users can create cgroups without a limit
  LoopThread thread_;
};

}  // namespace hf::guard
