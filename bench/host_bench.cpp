// holdfast_host_bench: what `ps` and `doctor` cost on a host with many containers: time and memory, and whether the
// cost grows with their number and no faster.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/device/rule.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/files/host.h"
#include "require.h"
#include "shapes.h"

namespace {

using hf::bench::die;
using hf::bench::require;

using namespace hf;
namespace fs = std::filesystem;

constexpr const char* kBundles = "/run/containerd/io.containerd.runtime.v2.task/hf-bench";

std::string id_of(unsigned number) {
  std::string id(64, 'a');
  const std::string digits = std::to_string(number);
  return id.substr(digits.size()) + digits;
}

// As large as the bundles of docker, and shaped like them: most of it is the seccomp profile.
void write_bundle(const std::string& id, const std::string& cgroup, bool is_owed) {
  const std::string directory = std::string(kBundles) + "/" + id;
  fs::create_directories(directory);
  std::string text = R"({"ociVersion":"1.0.2","process":{"env":["PATH=/bin"]},"mounts":[)";
  for (int i = 0; i < 12; ++i) {
    text += (i > 0 ? "," : "") + std::string(R"({"destination":"/mnt/)") + std::to_string(i) +
            R"(","type":"bind","source":"/var/lib/somewhere/else/)" + std::to_string(i) +
            R"(","options":["rbind","ro"]})";
  }
  text += R"(],"linux":{"cgroupsPath":")" + cgroup + R"(","devices":[)";
  text += is_owed ? R"({"path":"/dev/fuse","type":"c","major":10,"minor":229})" : "";
  text += R"(],"resources":{"devices":[{"allow":false,"access":"rwm"})";
  text += is_owed ? R"(,{"allow":true,"type":"c","major":10,"minor":229,"access":"rwm"})" : "";
  text += R"(]},"seccomp":{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":[")";
  for (int i = 0; i < 400; ++i) {
    text += (i > 0 ? R"(",")" : "") + std::string("name_of_a_call_") + std::to_string(i);
  }
  text += R"("],"action":"SCMP_ACT_ALLOW"}]}}})";
  std::ofstream(directory + "/config.json") << text;
}

// A process in namespaces and a cgroup of its own.
pid_t start_in(const kernel::Cgroup& cgroup) {
  const pid_t child = ::fork();
  if (child != 0) {
    return child;
  }
  ::signal(SIGTERM, SIG_DFL);
  const int file = ::openat(cgroup.directory.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC);
  if (::write(file, "0", 1) != 1 || ::unshare(CLONE_NEWNS) < 0) {
    ::_exit(1);
  }
  ::execl("/bin/sleep", "sleep", "600", nullptr);
  ::_exit(1);
}

class TestContainers {
 public:
  TestContainers(const kernel::Host& host, kernel::Bpf& bpf) : host_(host), bpf_(bpf) {
    name_ = "/hf-bench-" + std::to_string(::getpid());
    fs::create_directories(host.v2->point + name_ + "/docker");
  }
  TestContainers(const TestContainers&) = delete;
  TestContainers& operator=(const TestContainers&) = delete;
  ~TestContainers() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    for (const std::string& path : {name_ + "/docker", name_}) {
      if (path.ends_with("/docker")) {
        for (unsigned i = 0; i < pids_.size(); ++i) {
          remove(host_.v2->point + path + "/" + id_of(i));
        }
      }
      remove(host_.v2->point + path);
    }
    std::error_code ignored;
    fs::remove_all(kBundles, ignored);
  }

  void grow_to(unsigned count, bool with_bundles, unsigned owed) {
    for (auto i = unsigned(pids_.size()); i < count; ++i) {
      const std::string path = name_ + "/docker/" + id_of(i);
      fs::create_directories(host_.v2->point + path);
      const kernel::Cgroup cgroup = require(kernel::open_cgroup(host_, container::Hierarchy::v2, {path}));
      device::RuleSet rules = {require(device::parse_rule("c 1:3 rwm")), require(device::parse_rule("c 5:0 rwm")),
                               require(device::parse_rule("c 10:229 rwm")),
                               require(device::parse_rule("c 195:" + std::to_string(i % 8) + " rw"))};
      require(bpf_.attach(cgroup, require(bpf_.load(bench::like_runc(rules))), kernel::AttachAlongside{}));
      if (with_bundles) {
        write_bundle(id_of(i), path, i < owed);
      }
      pids_.push_back(start_in(cgroup));
    }
    ::usleep(300'000);
  }

 private:
  static void remove(const std::string& path) {
    for (int tries = 0; tries < 200 && ::rmdir(path.c_str()) < 0 && errno == EBUSY; ++tries) {
      ::usleep(10'000);
    }
  }

  const kernel::Host& host_;
  kernel::Bpf& bpf_;
  std::string name_;
  std::vector<pid_t> pids_;
};

struct Cost {
  double milliseconds = 0;
  double megabytes = 0;
};

Cost cost_of(const char* command) {
  constexpr int kTimes = 9;
  std::vector<Cost> all;
  for (int i = 0; i < kTimes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, STDOUT_FILENO);
      ::execl(HOLDFAST_PROGRAM, "holdfast", command, nullptr);
      ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    ::wait4(child, &status, 0, &usage);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
      die(std::string("holdfast ") + command + " failed");
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    all.push_back({seconds * 1e3, double(usage.ru_maxrss) / 1024});
  }
  std::ranges::sort(all, {}, &Cost::milliseconds);
  return all[all.size() / 2];
}

void measure(const kernel::Host& host, kernel::Bpf& bpf, const char* title, bool with_bundles, unsigned owed) {
  std::printf("%s\n%12s %14s %14s %14s %14s\n", title, "containers", "ps ms", "ps MB", "doctor ms", "doctor MB");
  TestContainers containers(host, bpf);
  for (const unsigned count : {250U, 500U, 1000U}) {
    containers.grow_to(count, with_bundles, owed);
    const Cost ps = cost_of("ps");
    const Cost doctor = cost_of("doctor");
    std::printf("%12u %14.0f %14.1f %14.0f %14.1f\n", count, ps.milliseconds, ps.megabytes, doctor.milliseconds,
                doctor.megabytes);
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  const kernel::Host host = require(kernel::open_host());
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  if (!host.v2) {
    die("needs cgroup v2");
  }
  measure(host, *bpf, "cgroups with a filter and a small process each (median of 9)", false, 0);
  measure(host, *bpf, "the same with a bundle of docker's size each", true, 0);
  measure(host, *bpf, "the same, and 64 of them are owed a device", true, 64);
  measure(host, *bpf, "the same, and all of them are owed a device", true, 1000);
  return 0;
}
