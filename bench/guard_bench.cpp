// How long a loss lasts with the guard running: from the return of the attacker's system call to the first open that
// works, measured by a process in the container; and what the guard costs while it is idle and while it heals.
//
// usage: holdfast_guard_bench [--containers N] [--attacks N] [--tier TIER] [--poll]   (root; other daemons must not
// run)
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/ledger/ledger.h"
#include "core/bpf/generate.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/device_v1.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel/files/host.h"
#include "require.h"

namespace hf {
namespace {

using bench::die;

using container::Hierarchy;
using device::Table;

constexpr int kStandIn = 195;  // major of a device without a driver here, so an allowed open fails with ENXIO

Table default_table(bool with_gpu) {
  device::RuleSet rules;
  for (const char* rule : {"c *:* m", "b *:* m", "c 1:3 rw", "c 1:5 rw", "c 1:7 rw", "c 1:8 rw", "c 1:9 rw", "c 5:0 rw",
                           "c 5:2 rw", "c 136:* rw"}) {
    rules.push_back(*device::parse_rule(rule));
  }
  for (const char* rule : {"c 195:0 rw", "c 195:255 rw"}) {
    if (with_gpu) {
      rules.push_back(*device::parse_rule(rule));
    }
  }
  return Table::of_rules(rules);
}

// A container: a cgroup with a process that is the first of a pid namespace, and a ledger entry.
struct Box {
  std::string id;    // of the container
  std::string name;  // of its cgroup
  std::string directory;
  Hierarchy hierarchy = Hierarchy::v2;
  pid_t init = -1;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) {
    die("write " + path);
  }
}

void make_box(const kernel::Host& host, kernel::Bpf& bpf, Box& box, int number, Hierarchy hierarchy,
              bool with_gpu = true) {
  box.hierarchy = hierarchy;
  if (box.id.empty()) {
    box.id = box.name = "hf-bench-" + std::to_string(::getpid()) + "-" + std::to_string(number);
  }
  box.directory = host.mount_of(hierarchy)->point + "/" + box.name;
  if (::mkdir(box.directory.c_str(), 0755) < 0) {
    die("create " + box.directory + ": " + std::strerror(errno));
  }
  const Result<kernel::Cgroup> cgroup = kernel::open_cgroup(host, hierarchy, container::CgroupPath{"/" + box.name});
  if (hierarchy == Hierarchy::v1) {
    write_file(box.directory + "/devices.deny", "a");
    for (const char* rule :
         {"c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 5:2 rwm", "c 136:* rwm", "c 195:0 rw", "c 195:255 rw"}) {
      if (with_gpu || !std::string_view(rule).starts_with("c 195")) {
        write_file(box.directory + "/devices.allow", rule);
      }
    }
  } else {
    const Result<kernel::Program> program = bpf.load(*bpf::generate(default_table(with_gpu)));
    if (!program || !bpf.attach(*cgroup, *program, kernel::AttachAlongside{})) {
      die("attach a filter to " + box.directory);
    }
  }
  ledger::Entry entry;
  entry.container = {box.id};
  entry.cgroup = "/" + box.name;
  entry.nodes.push_back({"/dev/nvidia0", device::Device{device::Kind::character, kStandIn, 0},
                         device::Access::read | device::Access::write});
  std::filesystem::create_directories(ledger::kDirectory);
  ::chmod(ledger::kDirectory, 0700);
  write_file(std::string(ledger::kDirectory) + "/" + box.id + ".json", ledger::render_entry(entry));
  ::chmod((std::string(ledger::kDirectory) + "/" + box.id + ".json").c_str(), 0600);
}

template <class Body>
void start_init(Box& box, Body body) {
  box.init = pid_t(::syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (box.init == 0) {
    write_file(box.directory + "/cgroup.procs", "0");
    body();
    ::_exit(0);
  }
}

void remove_box(const Box& box) {
  if (box.init > 0) {
    ::kill(box.init, SIGKILL);
    ::waitpid(box.init, nullptr, 0);
  }
  std::filesystem::remove(std::string(ledger::kDirectory) + "/" + box.id + ".json");
  for (int tries = 0; tries < 100 && ::rmdir(box.directory.c_str()) < 0 && errno == EBUSY; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

enum class Attack { write_deny, load_and_replace, replace_again };

// Runs in the container: revokes its own device as another process would, and opens it until that works again.
class Attacker {
 public:
  Attacker(const kernel::Host& host, const Box& box, std::string node)
      : node_(std::move(node)),
        bpf_(kernel::open_kernel_bpf()),
        cgroup_(*kernel::open_cgroup(host, box.hierarchy, container::CgroupPath{"/" + box.name})),
        bad_(*bpf::generate(default_table(false))) {
    deny_ = kernel::Fd(::openat(cgroup_.directory.get(), "devices.deny", O_WRONLY | O_CLOEXEC));
  }

  std::uint64_t strike(Attack attack) {
    std::optional<kernel::Program> now;
    if (attack != Attack::write_deny) {
      now = *bpf_->open(bpf_->query(cgroup_, kernel::Reach::own)->ids.front());
      if (!kept_ || attack == Attack::load_and_replace) {
        kept_.emplace(*bpf_->load(bad_));
      }
    }
    bool struck = false;
    if (attack == Attack::write_deny) {
      struck = ::pwrite(deny_.get(), "c 195:0 rw", 10, 0) == 10;
    } else {
      struck = bpf_->attach(cgroup_, *kept_, kernel::AttachReplacing{*now}).has_value();
    }
    const std::uint64_t since = kernel::monotonic_now();
    while (::open(node_.c_str(), O_RDWR | O_CLOEXEC) < 0 && errno == EPERM) {
      if (kernel::monotonic_now() - since > 30'000'000'000U) {
        return UINT64_MAX;
      }
    }
    return struck ? kernel::monotonic_now() - since : UINT64_MAX;
  }

 private:
  std::string node_;
  std::unique_ptr<kernel::Bpf> bpf_;
  kernel::Cgroup cgroup_;
  bpf::Code bad_;
  kernel::Fd deny_;
  std::optional<kernel::Program> kept_;
};

struct Times {
  double cpu = 0;  // seconds
  double rss = 0;  // MiB
};

Times times_of(pid_t pid) {
  Times times;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 3; fields >> field; ++i) {
    if (i == 14 || i == 15) {
      times.cpu += std::stod(field) / double(::sysconf(_SC_CLK_TCK));
    }
  }
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      times.rss = std::stod(line.substr(6)) / 1024;
    }
  }
  return times;
}

pid_t start_daemon(const std::string& tier, const std::string& directory) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int log = ::open((directory + "/log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(log, 2);
    std::vector<const char*> arguments = {HOLDFASTD_PROGRAM, "--journal", directory.c_str(), "--listen", "none",
                                          "--socket",        "none"};
    if (!tier.empty()) {
      arguments.push_back("--tier");
      arguments.push_back(tier.c_str());
    }
    arguments.push_back(nullptr);
    ::execv(HOLDFASTD_PROGRAM, const_cast<char**>(arguments.data()));
    ::_exit(127);
  }
  for (int i = 0; i < 600; ++i) {
    std::ifstream log(directory + "/log");
    const std::string text((std::istreambuf_iterator<char>(log)), {});
    if (text.find("ready ") != std::string::npos) {
      return pid;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  die("the daemon does not get ready");
  return -1;
}

void end_daemon(pid_t pid) {
  ::kill(pid, SIGTERM);
  ::waitpid(pid, nullptr, 0);
}

struct Figures {
  std::vector<std::uint64_t> losses;
  Times before;
  Times after;
};

void show(const char* name, Figures& figures) {
  std::vector<std::uint64_t>& all = figures.losses;
  std::ranges::sort(all);
  if (all.empty()) {
    return;
  }
  const auto at = [&all](double share) { return double(all[std::size_t(double(all.size() - 1) * share)]) / 1000; };
  std::printf("%-44s %6zu %10.1f %10.1f %10.1f %10.1f", name, all.size(), at(0.5), at(0.9), at(0.99), at(1));
  if (figures.after.cpu > 0) {
    std::printf("  %6.0f ms", (figures.after.cpu - figures.before.cpu) * 1e6 / double(all.size()));
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Attacks one container, and measures in it.
Figures measure(const kernel::Host& host, Box& box, Attack attack, int attacks, pid_t daemon, const std::string& node) {
  std::array<int, 2> ends{};
  (void)!::pipe(ends.data());
  start_init(box, [&] {
    Attacker attacker(host, box, node);
    std::mt19937 random(1);
    std::this_thread::sleep_for(std::chrono::seconds(3));  // until the guard has found the container
    for (int i = 0; i < attacks; ++i) {
      const std::uint64_t loss = attacker.strike(attack);
      (void)!::write(ends[1], &loss, sizeof(loss));
      if (loss == UINT64_MAX) {
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(15'000 + random() % 15'000));
    }
  });
  ::close(ends[1]);
  Figures figures;
  std::this_thread::sleep_for(std::chrono::milliseconds(2800));
  figures.before = daemon > 0 ? times_of(daemon) : Times();
  for (std::uint64_t loss = 0; ::read(ends[0], &loss, sizeof(loss)) == ssize_t(sizeof(loss));) {
    figures.losses.push_back(loss);
  }
  figures.after = daemon > 0 ? times_of(daemon) : Times();
  ::close(ends[0]);
  return figures;
}

void measure_losses(const kernel::Host& host, kernel::Bpf& bpf, const std::string& tier, int attacks,
                    const std::string& directory, const std::string& node) {
  std::printf("loss in µs, tier %-27s %6s %10s %10s %10s %10s  CPU per 1,000\n",
              tier.empty() ? "the best here" : tier.c_str(), "n", "median", "p90", "p99", "max");
  const pid_t daemon = start_daemon(tier, directory);
  int number = 0;
  const auto one = [&](const char* name, Hierarchy hierarchy, Attack attack) {
    if (!host.mount_of(hierarchy)) {
      return;
    }
    Box box;
    make_box(host, bpf, box, 100'000 + number++, hierarchy);
    Figures figures = measure(host, box, attack, attacks, daemon, node);
    show(name, figures);
    remove_box(box);
  };
  one("v2: a program is loaded and replaces ours", Hierarchy::v2, Attack::load_and_replace);
  one("v2: a program loaded long before replaces ours", Hierarchy::v2, Attack::replace_again);
  one("v1: 'c 195:0 rw' to devices.deny", Hierarchy::v1, Attack::write_deny);
  end_daemon(daemon);
}

// Heals all containers at an interval, as a cron job would.
void measure_cron(const kernel::Host& host, kernel::Bpf& bpf, int seconds, int attacks, const std::string& node) {
  Box box;
  make_box(host, bpf, box, 200'000 + seconds, host.v2 ? Hierarchy::v2 : Hierarchy::v1);
  std::atomic<bool> stops = false;
  std::thread cron([&] {
    while (!stops) {
      (void)!std::system(HOLDFAST_PROGRAM " heal --all >/dev/null 2>&1");
      std::this_thread::sleep_for(std::chrono::seconds(seconds));
    }
  });
  Figures figures = measure(host, box, host.v2 ? Attack::load_and_replace : Attack::write_deny, attacks, -1, node);
  stops = true;
  cron.join();
  show(("healing every " + std::to_string(seconds) + " s instead").c_str(), figures);
  remove_box(box);
}

// From the moment when the first process of a new container is in its cgroup to the first open that works.
void measure_newcomers(const kernel::Host& host, kernel::Bpf& bpf, Hierarchy hierarchy, const std::string& node) {
  if (!host.mount_of(hierarchy)) {
    return;
  }
  Figures figures;
  for (int i = 0; i < 100; ++i) {
    std::array<int, 2> ends{};
    std::array<int, 2> pids{};
    (void)!::pipe(ends.data());
    (void)!::pipe(pids.data());
    Box box;  // named as docker names them: only a survey finds a container whose cgroup has an arbitrary name
    box.id = std::to_string(::getpid()) + std::to_string(i);
    box.id.insert(0, 64 - box.id.size(), hierarchy == Hierarchy::v1 ? 'a' : 'b');
    box.name = "docker-" + box.id + ".scope";
    box.directory = host.mount_of(hierarchy)->point + "/" + box.name;
    // A process that ends creates it, as a runtime does: while it lives, it may still be working on the container.
    const pid_t runtime = ::fork();
    if (runtime == 0) {
      make_box(host, bpf, box, i, hierarchy, false);
      start_init(box, [&] {
        const std::uint64_t since = kernel::monotonic_now();
        while (::open(node.c_str(), O_RDWR | O_CLOEXEC) < 0 && errno == EPERM) {
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        const std::uint64_t took = kernel::monotonic_now() - since;
        (void)!::write(ends[1], &took, sizeof(took));
        ::pause();
      });
      (void)!::write(pids[1], &box.init, sizeof(box.init));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(runtime, &status, 0);
    if (status != 0 || ::read(pids[0], &box.init, sizeof(box.init)) != ssize_t(sizeof(box.init))) {
      die("create " + box.directory);
    }
    std::uint64_t took = 0;
    if (::read(ends[0], &took, sizeof(took)) == ssize_t(sizeof(took))) {
      figures.losses.push_back(took);
    }
    for (const int end : {ends[0], ends[1], pids[0], pids[1]}) {
      ::close(end);
    }
    remove_box(box);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  show(hierarchy == Hierarchy::v1 ? "  a new container on v1, µs" : "  a new container on v2, µs", figures);
}

void measure_idle(const kernel::Host& host, kernel::Bpf& bpf, int containers, const std::string& directory,
                  const std::string& node) {
  std::vector<Box> boxes(static_cast<std::size_t>(containers));
  for (int i = 0; i < containers; ++i) {
    make_box(host, bpf, boxes[std::size_t(i)], i,
             i % 2 == 0 && host.v2 ? Hierarchy::v2
             : host.v1             ? Hierarchy::v1
                                   : Hierarchy::v2);
    start_init(boxes[std::size_t(i)], [] {
      for (;;) {
        ::pause();
      }
    });
  }
  const pid_t daemon = start_daemon({}, directory);
  // Waits for the first surveys and the first probe of each container.
  Times before = times_of(daemon);
  for (int tries = 0; tries < 30; ++tries) {
    const Times earlier = before;
    std::this_thread::sleep_for(std::chrono::seconds(6));
    before = times_of(daemon);
    if (tries > 0 && before.cpu - earlier.cpu < 0.05) {
      break;
    }
  }
  constexpr int kSeconds = 30;
  std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  const Times after = times_of(daemon);
  std::printf("idle with %4d containers: %6.3f %% of a core, RSS %5.1f MiB (start-up took %.2f s of CPU)\n", containers,
              (after.cpu - before.cpu) * 100 / kSeconds, after.rss, before.cpu);
  std::fflush(stdout);
  measure_newcomers(host, bpf, Hierarchy::v2, node);
  measure_newcomers(host, bpf, Hierarchy::v1, node);
  end_daemon(daemon);
  std::ranges::for_each(boxes, remove_box);
}

int run(int count, char** arguments) {
  int containers = 1000;
  int attacks = 1000;
  std::string tier;
  bool cron = false;
  bool idle = true;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const bool has_value = i + 1 < count;
    if (argument == "--containers" && has_value) {
      containers = std::atoi(arguments[++i]);
    } else if (argument == "--attacks" && has_value) {
      attacks = std::atoi(arguments[++i]);
    } else if (argument == "--tier" && has_value) {
      tier = arguments[++i];
    } else if (argument == "--poll") {
      cron = true;
    } else if (argument == "--no-idle") {
      idle = false;
    } else {
      die("unknown argument " + argument);
    }
  }
  const Result<kernel::Host> host = kernel::open_host();
  if (!host || ::geteuid() != 0) {
    die("needs root and cgroups");
  }
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  std::string directory = "/tmp/hf-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    die("create a directory");
  }
  const std::string node = directory + "/nvidia0";
  if (::mknod(node.c_str(), S_IFCHR | 0666, makedev(kStandIn, 0)) < 0) {
    die("create a device node");
  }
  measure_losses(*host, *bpf, tier, attacks, directory, node);
  if (cron) {
    measure_cron(*host, *bpf, 1, 20, node);
    measure_cron(*host, *bpf, 10, 6, node);
  }
  for (const int number : {0, containers / 10, containers}) {
    if (idle) {
      measure_idle(*host, *bpf, number, directory, node);
    }
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace hf

int main(int count, char** arguments) { return hf::run(count, arguments); }
