// Newcomers: the thread that meets new containers as their first process joins its cgroup. Surveys may take long, and a
// runtime or kubelet changes a new container's rules within milliseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "adapters/config/config.h"
#include "core/container/event.h"
#include "kernel/host.h"
#include "services/guard/mailbox.h"
#include "services/guard/survey.h"

namespace hf::guard {

class Newcomers {
 public:
  using Report = std::function<void(WardPtr)>;  // called from this thread

  Newcomers(const kernel::Host& host, config::Config config, Report report);
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;
  ~Newcomers();

  // A cgroup was created, or a process joined one.
  void meet(const container::Event& event);
  void adopt(SurveyPtr survey);
  void set_config(const config::Config& config);
  bool ends_within(std::chrono::milliseconds limit);

 private:
  // A cgroup that is still empty, or whose container cannot be read yet, is looked at again a few times.
  struct Waiting {
    container::Hierarchy hierarchy = container::Hierarchy::v2;
    std::string path;
    std::string container;   // the container's own cgroup, as its path tells
    container::Pid process;  // 0: not known, look for one in the cgroup
    container::Pid creator;  // the process that made the cgroup, or moved the first process into it
    std::uint64_t at = 0;    // nanoseconds of CLOCK_MONOTONIC
    std::uint64_t pause = 0;
  };

  void work();
  void wait();
  void meet_due(std::uint64_t now);
  // False: try again.
  bool meet_one(const Waiting& waiting);
  [[nodiscard]] container::Pid creator_of(const Waiting& waiting, container::Pid process) const;
  [[nodiscard]] std::optional<container::Pid> find_process(const Waiting& waiting) const;

  const kernel::Host& host_;
  config::Config config_;
  Report report_;
  Mailbox mailbox_;
  SurveyPtr survey_;
  std::set<std::string> known_;  // cgroups of containers, as the last survey has them
  std::set<std::string> met_;    // cgroups that were met since
  std::vector<Waiting> waiting_;
  std::atomic<std::size_t> letters_ = 0;  // that were not read yet: users make cgroups as fast as they like
  bool stops_ = false;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

}  // namespace hf::guard
