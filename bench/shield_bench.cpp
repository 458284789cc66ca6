// What the shield adds to one open(2) of a device: while the rules allow it, and while it stands in for them; with few
// entries and with many. All measurements are interleaved in one run, so that the differences can be compared.
//
// usage: holdfast_shield_bench   (root, cgroup v2, kernel 5.18 or later)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bpf/generate.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"
#include "kernel/cgroup/shield.h"
#include "kernel/files/host.h"
#include "require.h"

namespace hf {
namespace {

using bench::die;
using bench::require;

using container::ShieldEntry;
using device::Table;

constexpr int kOpens = 20'000;
constexpr int kRounds = 15;
constexpr device::Device kNull{device::Kind::character, 1, 3};
constexpr device::Access kReadWrite = device::Access::read | device::Access::write;

// A cgroup that is removed at the end.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0755) < 0) {
      die("cannot make " + path_);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { ::rmdir(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

double nanoseconds_per_open() {
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < kOpens; ++i) {
    const int opened = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (opened < 0) {
      ::_exit(3);
    }
    ::close(opened);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
  return took.count() / kOpens;
}

// Measures in a child that has joined the cgroup.
double measure_in(const std::string& cgroup) {
  int ends[2];
  if (::pipe(ends) < 0) {
    die("pipe");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream(cgroup + "/cgroup.procs") << 0;
    nanoseconds_per_open();
    const double took = nanoseconds_per_open();
    ::_exit(::write(ends[1], &took, sizeof(took)) == ssize_t(sizeof(took)) ? 0 : 1);
  }
  ::close(ends[1]);
  double took = 0;
  const bool is_read = ::read(ends[0], &took, sizeof(took)) == ssize_t(sizeof(took));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!is_read) {
    die("an open was refused in " + cgroup);
  }
  return took;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run() {
  const kernel::Host host = require(kernel::open_host());
  if (!host.v2) {
    die("there is no cgroup v2");
  }
  const auto bpf = kernel::open_kernel_bpf();
  kernel::Filters filters(host, *bpf);
  kernel::Shield shield = require(kernel::Shield::open(host, filters));
  const std::string base = "/hf-bench-" + std::to_string(::getpid());
  const Scratch plain_parent(host.v2->point + base);
  const Scratch plain(plain_parent.path() + "/plain");
  const Scratch parent(host.v2->point + base + "-shield");
  const Scratch idle(parent.path() + "/idle");
  const Scratch stands_in(parent.path() + "/stands-in");
  const auto open = [&host](const Scratch& scratch) {
    return require(kernel::open_cgroup(host, container::Hierarchy::v2,
                                       container::CgroupPath{scratch.path().substr(host.v2->point.size())}));
  };
  const kernel::Program allow =
      require(bpf->load(require(bpf::generate(Table::of_rules(std::vector{*device::parse_rule("c 1:3 rw")})))));
  const kernel::Program deny =
      require(bpf->load(require(bpf::generate(Table::of_rules(std::vector{*device::parse_rule("c 1:5 rw")})))));
  require(bpf->attach(open(plain), allow, kernel::AttachAlongside{}));
  require(bpf->attach(open(idle), allow, kernel::AttachAlongside{}));
  require(bpf->attach(open(stands_in), deny, kernel::AttachAlongside{}));
  const kernel::Cgroup shield_parent = open(parent);
  for (const Scratch* scratch : {&idle, &stands_in}) {
    require(shield.set(open(*scratch).id, shield_parent, {ShieldEntry{kNull, kReadWrite, 0, 0}}));
  }
  require(shield.attach(shield_parent));
  for (const int entries : {2, 10'000}) {
    for (int i = 0; i < entries - 2; ++i) {  // of cgroups that do not exist
      require(shield.set({std::uint64_t(1) << 40U | std::uint64_t(i)}, shield_parent,
                         {ShieldEntry{kNull, kReadWrite, 0, 0}}));
    }
    std::vector<double> without;
    std::vector<double> at_rest;
    std::vector<double> standing_in;
    for (int round = 0; round < kRounds; ++round) {
      without.push_back(measure_in(plain.path()));
      at_rest.push_back(measure_in(idle.path()));
      standing_in.push_back(measure_in(stands_in.path()));
    }
    const double base_ns = median(without);
    std::printf(
        "%6d entries: open+close without a shield %.0f ns; idle shield %+.0f ns (%.3f); standing in %+.0f ns (%.3f)\n",
        entries, base_ns, median(at_rest) - base_ns, median(at_rest) / base_ns, median(standing_in) - base_ns,
        median(standing_in) / base_ns);
  }
  // A daemon may use the same map: only the entries made here are removed. The programs go with their cgroups.
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    require(shield.clear({std::uint64_t(1) << 40U | i}));
  }
  for (const Scratch* scratch : {&idle, &stands_in}) {
    require(shield.clear(open(*scratch).id));
  }
  return 0;
}

}  // namespace
}  // namespace hf

int main() { return hf::run(); }
