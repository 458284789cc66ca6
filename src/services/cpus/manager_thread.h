// ManagerThread: the thread of the CPU manager, which decides for NRI too. It is told of containers that appear and of
// all that run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "adapters/config/config.h"
#include "host/census.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "kernel/watch/cgroup_writes.h"
#include "services/cpus/device_reader.h"
#include "services/cpus/manager.h"
#include "services/cpus/marks.h"
#include "services/cpus/nri_client.h"
#include "services/cpus/placement_server.h"

namespace hf::cpus {

struct ThreadSettings {
  config::Config config;
  std::function<void(const std::string& line, bool is_warning)> log;
  std::function<void(std::shared_ptr<const report::CpuStatus>)> publish;  // empty: CPUs are not managed
};

class ManagerThread {
 public:
  ManagerThread(const kernel::Host& host, ThreadSettings settings);
  ManagerThread(const ManagerThread&) = delete;
  ManagerThread& operator=(const ManagerThread&) = delete;
  ~ManagerThread();

  // Called from other threads. A census has every container that runs; what it does not have has ended.
  // `began`: nanoseconds of CLOCK_MONOTONIC.
  void take_census(const std::vector<host::DiscoveredContainer>& discovered, std::uint64_t began);
  void add(const host::DiscoveredContainer& discovered);
  // How to ask for a census; empty: it cannot be asked for any more.
  void set_census_request(std::function<void()> request);
  // Switches manager and NRI on, off or over. Containers keep the CPUs that they have.
  void set_config(const config::Config& config);

 private:
  [[nodiscard]] std::shared_ptr<const config::Config> latest_config();
  [[nodiscard]] bool is_on() const { return settings_.config.manages_cpus(); }
  void work();
  void work_on_cpus(std::uint64_t now);
  void open(std::uint64_t now);
  void open_placements();
  void publish();
  [[nodiscard]] bool is_placed(const std::string& container) const;
  void adopt(Tenants tenants, std::uint64_t began);
  void reconcile(const Manager::Ended& ended = {});
  void request_census();
  void restore_irqs();
  void leave_to_kubelet();
  void watch_writes();
  void take_writes();
  void look_again();
  nri::Handlers nri_handlers();
  nri::Adjustment decide(const nri::Container& container, std::function<nri::Adjustment()> decision,
                         std::chrono::steady_clock::time_point deadline);
  nri::Adjustment create(const nri::Container& container);
  nri::Adjustment place(const nri::Container& container, const cpu::Tenant& tenant);
  nri::Adjustment update(const nri::Container& container);
  [[nodiscard]] nri::Adjustment adjustment_to(const nri::Container& container,
                                              const Result<Manager::Prepared>& placement);
  void lose_engine();
  void expect_writes_since(std::uint64_t since);
  void heed_engine(host::CpuTenant& tenant) const;
  void synchronize(const std::vector<nri::Container>& containers);
  void stop(const nri::Container& container);
  [[nodiscard]] cpu::Owner owner_by_id(const nri::Container& container) const;
  void log_passed(const nri::Container& container, const std::string& why) const;
  void expect(const nri::Container& container);
  void forget_expected(std::uint64_t now);
  void load_pinned();
  void save_pinned();
  [[nodiscard]] std::uint64_t next_due() const;

  const kernel::Host& host_;
  ThreadSettings settings_;
  kernel::EventLoop loop_;
  std::optional<Manager> manager_;
  Tenants tenants_;
  std::map<std::string, std::uint64_t> added_at_;    // containers that no census has had yet, by id
  std::map<std::string, std::uint64_t> stopped_at_;  // by the engine's id: since the last census began
  struct Expected {
    std::string id;  // the engine's
    std::uint64_t since = 0;
  };
  std::map<cpu::Owner, Expected> expected_;  // containers that an engine creates
  struct Created {
    cpu::CpuTime time;
    std::optional<cpu::CpuSet> pinned;  // by another program
    std::uint64_t since = 0;
  };
  std::map<std::string, Created> created_;  // containers as their engine has described them, by id
  std::optional<std::uint64_t> lost_at_;    // since then the engine does not ask us
  Pinned pinned_;                           // as the file has them
  std::string problem_;                     // why there is no manager
  std::uint64_t due_ = 0;
  std::uint64_t reconciled_at_ = 0;
  std::uint64_t again_at_ = 0;  // a reconciliation is due then, whatever comes before
  bool has_census_ = false;
  bool has_missed_ = false;  // the last census did not have a container that runs
  std::uint64_t census_requested_at_ = 0;
  std::mutex request_mutex_;
  std::function<void()> request_;
  bool stops_ = false;
  std::mutex config_mutex_;
  std::shared_ptr<const config::Config> latest_config_;  // the config for the threads that tell of containers
  std::optional<DeviceReader> devices_;
  std::optional<NriClient> nri_;  // uses devices_
  std::unique_ptr<PlacementServer> placements_;
  std::optional<kernel::CgroupWrites> writes_;
  std::thread thread_;
};

}  // namespace hf::cpus
