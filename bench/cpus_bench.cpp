// cpus_bench [CONTAINERS]: what the CPU manager costs on this host's own kernel, with so many cgroups (default 1000)
// that stand for containers: a reconciliation that changes nothing, one that takes CPUs from all of them for one, and
// 1,000 in a row while a device is opened all the time. Needs root and two CPUs. Exit 1 if a cpuset is not what it
// should be, or an open failed.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/files/clock.h"
#include "kernel/files/host.h"
#include "require.h"
#include "services/cpus/manager.h"

namespace {

namespace fs = std::filesystem;
using hf::cpus::Manager;
using hf::cpus::Tenants;

void put(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) {
    std::fprintf(stderr, "cannot write %s to %s\n", text.c_str(), file.c_str());
    std::exit(2);
  }
}

std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Cgroups below one of our own, which go in the end.
class Cgroups {
 public:
  Cgroups(const std::string& mount, bool is_v2, std::size_t count)
      : is_v2_(is_v2), top_(fs::path(mount) / name()), mount_(mount) {
    open_ = this;
    std::atexit([] { open_ == nullptr ? void() : open_->remove(); });  // require() ends the program
    fs::create_directory(top_);
    if (is_v2) {
      put(fs::path(mount) / "cgroup.subtree_control", "+cpuset");
      put(top_ / "cgroup.subtree_control", "+cpuset");
    } else {
      confine(top_);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      paths_.push_back("/" + name() + "/" + std::string(64 - number.size(), '0') + number);
      fs::create_directory(mount + paths_.back());
      if (!is_v2) {
        confine(mount + paths_.back());
      }
    }
  }
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;
  ~Cgroups() { remove(); }

  void remove() {
    open_ = nullptr;
    for (const std::string& path : paths_) {
      ::rmdir((mount_ + path).c_str());
    }
    ::rmdir(top_.c_str());
  }

  [[nodiscard]] Tenants tenants() const {
    Tenants tenants;
    for (const std::string& path : paths_) {
      hf::host::CpuTenant& tenant = tenants.emplace_back();
      tenant.container.id.value = fs::path(path).filename();
      tenant.container.cgroup = path;
      if (is_v2_) {
        tenant.container.v2 = path;
      } else {
        tenant.container.v1["cpuset"] = path;
      }
      tenant.tenant.id = path;
      tenant.tenant.owner = {tenant.container.id.value, "bench"};
    }
    return tenants;
  }
  [[nodiscard]] std::string cpus(std::size_t number) const {
    return line_of(mount_ + paths_[number] + (is_v2_ ? "/cpuset.cpus.effective" : "/cpuset.cpus"));
  }
  [[nodiscard]] std::size_t size() const { return paths_.size(); }

 private:
  static std::string name() { return "hf-cpus-bench-" + std::to_string(::getpid()); }
  static void confine(const fs::path& cgroup) {
    for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
      put(cgroup / file, line_of(cgroup.parent_path() / file));
    }
  }

  static inline Cgroups* open_ = nullptr;

  bool is_v2_;
  fs::path top_;
  std::string mount_;
  std::vector<std::string> paths_;
};

struct Times {
  std::vector<double> milliseconds;
  void show(const char* what) {
    std::ranges::sort(milliseconds);
    std::printf("%-62s n %4zu  median %7.2f ms  max %7.2f ms\n", what, milliseconds.size(),
                milliseconds[milliseconds.size() / 2], milliseconds.back());
  }
};

template <class Work>
void timed(Times& times, Work work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  times.milliseconds.push_back(
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
}

// A process in a devices cgroup (v1, where there is one) that opens a node without a driver all the time: ENXIO says
// that it may, anything else that it may not.
class Opener {
 public:
  Opener() {
    counts_ = static_cast<volatile std::uint64_t*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    node_ = "/tmp/hf-cpus-bench-node-" + std::to_string(::getpid());
    ::mknod(node_.c_str(), S_IFCHR | 0666, ::makedev(195, 0));
    if (fs::exists("/sys/fs/cgroup/devices/devices.list")) {
      cgroup_ = "/sys/fs/cgroup/devices/hf-cpus-bench-" + std::to_string(::getpid());
      fs::create_directory(cgroup_);
      put(cgroup_ / "devices.deny", "a");
      put(cgroup_ / "devices.allow", "c 195:0 rw");
    }
    child_ = ::fork();
    if (child_ == 0) {
      run();
    }
  }
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;
  ~Opener() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::unlink(node_.c_str());
    ::rmdir(cgroup_.c_str());
  }

  [[nodiscard]] std::uint64_t allowed() const { return counts_[0]; }
  [[nodiscard]] std::uint64_t refused() const { return counts_[1]; }
  [[nodiscard]] std::string rules() const {
    std::ifstream in(cgroup_ / "devices.list");
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  [[noreturn]] void run() const {
    if (!cgroup_.empty()) {
      put(cgroup_ / "cgroup.procs", "0");
    }
    for (;;) {
      const int file = ::open(node_.c_str(), O_RDWR | O_NONBLOCK);
      counts_[file >= 0 || errno == ENXIO ? 0 : 1] = counts_[file >= 0 || errno == ENXIO ? 0 : 1] + 1;
      if (file >= 0) {
        ::close(file);
      }
    }
  }

  volatile std::uint64_t* counts_;
  std::string node_;
  fs::path cgroup_;
  pid_t child_ = 0;
};

hf::cpus::ManagerSettings bench_settings() {
  hf::cpus::ManagerSettings settings;
  settings.directory = "/tmp/hf-cpus-bench-" + std::to_string(::getpid());
  settings.log = [](const std::string& line, bool is_warning) {
    if (is_warning) {
      std::fprintf(stderr, "%s\n", line.c_str());
    }
  };
  settings.clock = hf::kernel::monotonic_now;
  return settings;
}

bool keeps_device_rules(Manager& manager, const Tenants& some, const hf::cpu::CpuRequest& one) {
  const Opener opener;
  const std::string before = opener.rules();
  for (int i = 0; i < 500; ++i) {
    hf::bench::require(manager.assign(some, some[0].tenant.owner, one));
    hf::bench::require(manager.release(some, some[0].tenant.owner));
  }
  const bool is_same = opener.rules() == before;
  std::printf("1000 reconciliations: %llu opens of a device, %llu refused; its rules are %s\n",
              static_cast<unsigned long long>(opener.allowed()), static_cast<unsigned long long>(opener.refused()),
              is_same ? "the same bytes" : "NOT the same");
  return is_same && opener.refused() == 0;
}

int measure(std::size_t count) {
  const hf::kernel::Host host = hf::bench::require(hf::kernel::open_host());
  const hf::kernel::CpuMounts mounts = hf::kernel::read_cpu_mounts(host);
  const bool is_v2 = mounts.cpuset.empty();
  const Cgroups cgroups(is_v2 ? mounts.v2 : mounts.cpuset, is_v2, count);
  const hf::cpus::ManagerSettings settings = bench_settings();
  const Tenants tenants = cgroups.tenants();
  Manager manager = hf::bench::require(Manager::open(host, settings));
  hf::bench::require(manager.reconcile(tenants, {}));
  const std::string all = cgroups.cpus(0);
  hf::cpu::CpuRequest one;
  one.count = 1;
  bool is_right = true;

  Times nothing;
  Times assigned;
  Times released;
  for (int i = 0; i < 20; ++i) {
    timed(nothing, [&] { hf::bench::require(manager.reconcile(tenants, {})); });
  }
  const auto toggle = [&](std::size_t owner) {
    timed(assigned, [&] { hf::bench::require(manager.assign(tenants, tenants[owner].tenant.owner, one)); });
    const std::string own = cgroups.cpus(owner);
    is_right = is_right && own != all && own.find(',') == std::string::npos && own.find('-') == std::string::npos;
    for (std::size_t i = 0; i < cgroups.size(); ++i) {
      is_right = is_right && (i == owner || cgroups.cpus(i) == hf::cpu::to_string(manager.status().pool));
    }
    timed(released, [&] { hf::bench::require(manager.release(tenants, tenants[owner].tenant.owner)); });
    is_right = is_right && cgroups.cpus(owner) == all;
  };
  for (int i = 0; i < 20; ++i) {
    toggle(std::size_t(i) * 7 % cgroups.size());
  }
  const std::string with = " with " + std::to_string(count) + " containers";
  std::printf("cgroup %s\n", is_v2 ? "v2" : "v1");
  nothing.show(("reconcile, nothing to do," + with).c_str());
  assigned.show(("one gets a CPU, all others leave it," + with).c_str());
  released.show(("it is given back to all," + with).c_str());

  const Tenants some(tenants.begin(), tenants.begin() + std::ptrdiff_t(std::min<std::size_t>(count, 8)));
  const bool keeps_rules = keeps_device_rules(manager, some, one);
  fs::remove_all(settings.directory);
  if (!is_right) {
    std::printf("WRONG: a cpuset was not what it should be\n");
  }
  return is_right && keeps_rules ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return measure(argc > 1 ? std::size_t(std::atoi(argv[1])) : 1000); }
