// A host for tests of the CPU manager: 16 CPUs, of which 0 is reserved, and containers that are directories.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "services/cpus/manager.h"
#include "support/fake_host.h"

namespace hf::cpus {

namespace fs = std::filesystem;

inline constexpr const char* kMounts =
    "30 20 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "31 20 0:27 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
    "32 20 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";

class Managing : public testing::Test {
 protected:
  static test::Files files() {
    return {{"proc/self/mountinfo", kMounts},
            {"proc/filesystems", "nodev\tcgroup\n"},
            {"sys/devices/system/cpu/online", "0-15\n"},
            {"sys/fs/cgroup/devices/devices.list", "a *:* rwm\n"}};
  }

  fs::path at(const std::string& path) const { return fake_.root() + "/" + path; }
  static void put(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  static std::string get(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
  }

  fs::path cgroup(const std::string& name) const { return at("sys/fs/cgroup/cpuset/docker/" + name); }
  void make(const std::string& name, const std::string& cpus = "0-15") const {
    fs::create_directories(cgroup(name));
    put(cgroup(name) / "cpuset.cpus", cpus + "\n");
    put(cgroup(name) / "cgroup.procs", "17\n");
  }
  [[nodiscard]] std::string cpus(const std::string& name) const { return get(cgroup(name) / "cpuset.cpus"); }

  fs::path quota_file(const std::string& name) const {
    return at("sys/fs/cgroup/cpu/docker/" + name) / "cpu.cfs_quota_us";
  }
  // With a limit of CPU time in its configuration, and that one in force now.
  host::CpuTenant limited(const std::string& name, std::uint32_t count, std::int64_t configured,
                          const std::string& now) const {
    host::CpuTenant limited = tenant(name, count);
    limited.time.quota = configured;
    limited.container.v1["cpu"] = "/docker/" + name;
    fs::create_directories(quota_file(name).parent_path());
    put(quota_file(name), now + "\n");
    return limited;
  }

  host::CpuTenant tenant(const std::string& name, std::uint32_t count = 0) const {
    if (!fs::exists(cgroup(name))) {
      make(name);
    }
    host::CpuTenant tenant;
    tenant.container.id.value = name;
    tenant.container.cgroup = "/docker/" + name;
    tenant.container.v1["cpuset"] = "/docker/" + name;
    tenant.tenant.id = tenant.container.cgroup;
    tenant.tenant.owner = {name, "c"};
    if (count > 0) {
      tenant.tenant.request.emplace();
      tenant.tenant.request->count = count;
    }
    return tenant;
  }

  Result<Manager> open() {
    ManagerSettings settings;
    settings.cpus = settings_;
    settings.directory = at("state");
    settings.log = [this](const std::string& line, bool) { log_ += line + "\n"; };
    settings.clock = [this] { return ++now_; };
    settings.topology = [this](const kernel::Host&) { return topology_; };
    return Manager::open(host_, std::move(settings));
  }
  void reconcile(Manager& manager, const Tenants& tenants) {
    const Result<void> done = manager.reconcile(tenants, {.census_at = now_ + 1, .owners = {}});
    ASSERT_TRUE(done) << done.error().message;
  }
  static std::string problem_of(const Manager& manager, const std::string& name) {
    for (const report::CpuContainer& one : manager.status().containers) {
      if (one.title == name || one.id == name) {
        return one.problem;
      }
    }
    return "no such container";
  }

  test::FakeHost fake_{files()};
  kernel::Host host_ = fake_.open();
  config::CpuSettings settings_ = [] {
    config::CpuSettings settings;
    settings.reserved = *cpu::parse_cpu_set("0");
    return settings;
  }();
  cpu::Topology topology_ = *cpu::find_machine("workstation");
  std::uint64_t now_ = 1;
  std::string log_;
};

}  // namespace hf::cpus
