// holdfast_bench: what a device check costs in the kernel, and what reading and writing filters costs us. Compare the
// ratios: all figures of a table come from one run on one machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bpf/analyse.h"
#include "core/bpf/generate.h"
#include "core/device/shortest.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/files/host.h"
#include "require.h"
#include "shapes.h"

namespace {

using hf::bench::die;
using hf::bench::require;

using namespace hf;
using bpf::Code;
using device::RuleSet;
using device::Table;

class Directory {
 public:
  explicit Directory(std::string path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0755) < 0) {
      die("mkdir " + path_);
    }
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    for (int tries = 0; tries < 500 && ::rmdir(path_.c_str()) < 0; ++tries) {
      ::usleep(10'000);
    }
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Different devices spread over several majors, as on a host with many device classes.
RuleSet rules_of(unsigned count) {
  RuleSet rules;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t major = 200 + i / 5;
    const std::uint32_t minor = 7 * (i % 5);
    const device::Access access = i % 2 == 0 ? device::Access::all : device::Access::read | device::Access::write;
    rules.push_back({{device::Kind::character, device::Span{major, major}, device::Span{minor, minor}},
                     access,
                     device::Match::within});
  }
  return rules;
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_microseconds(int times, const std::function<void()>& body) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    all.push_back(seconds_of(body) * 1e6);
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// A child in the cgroup accesses the device of every rule in turn; the cost of a run is in the kernel's own statistics.
double nanoseconds_per_check(kernel::Bpf& bpf, const kernel::Cgroup& cgroup, const Code& code,
                             const std::vector<std::string>& nodes) {
  const kernel::Program program = require(bpf.load(code));
  require(bpf.attach(cgroup, program, kernel::AttachAlongside{}));
  constexpr int kRounds = 200'000;
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::openat(cgroup.directory.get(), "cgroup.procs", O_WRONLY);
    if (::write(file, "0", 1) != 1) {
      ::_exit(1);
    }
    for (int i = 0; i < kRounds; ++i) {
      (void)!::access(nodes[std::size_t(i) % nodes.size()].c_str(), R_OK);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  bpf_prog_info info{};
  std::uint32_t size = sizeof(info);
  if (status != 0 || ::bpf_obj_get_info_by_fd(program.fd.get(), &info, &size) < 0 || info.run_cnt == 0) {
    die("the kernel keeps no statistics of programs");
  }
  require(bpf.detach(cgroup, program, 0));
  return double(info.run_time_ns) / double(info.run_cnt);
}

void bench_checks(const kernel::Host& host, kernel::Bpf& bpf) {
  const kernel::Fd statistics(::bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!statistics) {
    die("cannot switch program statistics on");
  }
  const std::string name = "hf-bench-" + std::to_string(::getpid());
  const Directory cgroup_directory(host.v2->point + "/" + name);
  const kernel::Cgroup cgroup = require(kernel::open_cgroup(host, container::Hierarchy::v2, {"/" + name}));
  std::string node_directory = "/tmp/hf-bench-XXXXXX";
  if (::mkdtemp(node_directory.data()) == nullptr) {
    die("mkdtemp");
  }
  const double baseline =
      nanoseconds_per_check(bpf, cgroup, require(bpf::generate(Table::everything())), {"/dev/null"});
  std::printf("one check in the kernel (ns, less the %.0f ns an empty program is measured with)\n", baseline);
  std::printf("%8s %10s %10s %10s %10s   ours/runc ours/crun ours/systemd\n", "rules", "holdfast", "runc", "crun",
              "systemd");
  double runc_with_10 = 0;
  for (const unsigned count : {10U, 50U, 200U}) {
    const RuleSet rules = rules_of(count);
    std::vector<std::string> nodes;
    for (const device::Rule& rule : rules) {
      nodes.push_back(node_directory + "/" + std::to_string(count) + "-" + std::to_string(nodes.size()));
      ::mknod(nodes.back().c_str(), S_IFCHR | 0666, makedev(rule.selector.major->first, rule.selector.minor->first));
    }
    const Code codes[] = {require(bpf::generate(Table::of_rules(rules))), bench::like_runc(rules),
                          bench::like_crun(rules), bench::like_systemd(rules)};
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    for (int round = 0; round < 5; ++round) {  // interleaved, so that a slow moment affects all
      for (int i = 0; i < 4; ++i) {
        best[i] = std::min(best[i], std::max(0.1, nanoseconds_per_check(bpf, cgroup, codes[i], nodes) - baseline));
      }
    }
    runc_with_10 = count == 10 ? best[1] : runc_with_10;
    std::printf("%8u %10.1f %10.1f %10.1f %10.1f   %8.2f  %8.2f  %8.2f\n", count, best[0], best[1], best[2], best[3],
                best[0] / best[1], best[0] / best[2], best[0] / best[3]);
    if (count == 200) {
      std::printf("ours with 200 rules / runc's with 10: %.2f\n", best[0] / runc_with_10);
    }
    for (const std::string& node : nodes) {
      ::unlink(node.c_str());
    }
  }
  ::rmdir(node_directory.c_str());
}

void bench_core() {
  std::printf("\nreading and writing filters (µs, median)\n");
  std::printf("%8s %14s %14s %14s %16s %14s\n", "rules", "analyse runc", "analyse ours", "generate+prove",
              "whole repair", "shortest");
  for (const unsigned count : {10U, 50U, 200U}) {
    const RuleSet rules = rules_of(count);
    const Code theirs = bench::like_runc(rules);
    const Table table = *bpf::analyse(theirs);
    if (table != Table::of_rules(rules)) {
      die("a filter was misread");
    }
    const Code ours = require(bpf::generate(table));
    std::printf("%8u %14.0f %14.0f %14.0f %16.0f %14.0f\n", count,
                median_microseconds(201, [&] { (void)bpf::analyse(theirs); }),
                median_microseconds(201, [&] { (void)bpf::analyse(ours); }),
                median_microseconds(201, [&] { (void)bpf::generate(table); }),
                median_microseconds(201, [&] { (void)bpf::generate(*bpf::analyse(theirs)); }),
                median_microseconds(51, [&] { (void)device::shortest_rules(table); }));
  }
}

void bench_host(const kernel::Host& host, kernel::Bpf& bpf) {
  constexpr unsigned kCgroups = 1000;
  const std::string name = "hf-bench-host-" + std::to_string(::getpid());
  const Directory parent(host.v2->point + "/" + name);
  std::vector<std::unique_ptr<Directory>> directories;
  for (unsigned i = 0; i < kCgroups; ++i) {
    directories.push_back(std::make_unique<Directory>(parent.path() + "/" + std::to_string(i)));
    const kernel::Cgroup cgroup =
        require(kernel::open_cgroup(host, container::Hierarchy::v2, {"/" + name + "/" + std::to_string(i)}));
    RuleSet rules = rules_of(14);
    rules.push_back({{device::Kind::character, device::Span{195, 195}, device::Span{i % 8, i % 8}},
                     device::Access::all,
                     device::Match::within});
    const kernel::Program program = require(bpf.load(bench::like_runc(rules)));
    require(bpf.attach(cgroup, program, kernel::AttachAlongside{}));
  }
  std::vector<double> all;
  for (int i = 0; i < 11; ++i) {
    all.push_back(seconds_of([] {
      if (std::system(HOLDFAST_PROGRAM " rules >/dev/null") != 0) {
        die("holdfast rules failed");
      }
    }));
  }
  std::ranges::sort(all);
  std::printf("\n`holdfast rules` over %u cgroups with a filter each: %.0f ms (median of %zu)\n", kCgroups,
              all[all.size() / 2] * 1e3, all.size());
}

}  // namespace

int main() {
  const kernel::Host host = require(kernel::open_host());
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  if (!host.v2) {
    die("needs cgroup v2");
  }
  bench_core();
  bench_checks(host, *bpf);
  bench_host(host, *bpf);
  return 0;
}
