#include "kernel/container/node_prober.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/container/lookup_child.h"
#include "kernel/container/node_report.h"
#include "kernel/files/file.h"
#include "kernel/process/child.h"
#include "kernel/process/process.h"

namespace hf::kernel {
namespace {

using container::NodeView;

// Everything the child needs, opened before the fork, because the child makes only system calls.
struct Entry {
  Fd mounts;
  Fd root;
  Rights rights;
  std::vector<gid_t> groups;
  std::vector<const Cgroup*> cgroups;
};

// Assumes the user, the groups and the capabilities of the container's process, and no more, by plain system calls.
int assume_rights(const Entry& entry) {
  const container::Credentials& user = entry.rights.user;
  ::prctl(PR_SET_KEEPCAPS, 1);
  if (::syscall(SYS_setgroups, entry.groups.size(), entry.groups.data()) < 0 ||
      ::syscall(SYS_setresgid, user.gids[0], user.gids[0], user.gids[0]) < 0 ||
      ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) < 0) {
    return errno;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) < 0) {
    return errno;
  }
  // We may have fewer capabilities than the container. Those that matter for opening a device node are among ours.
  const std::uint64_t ours = data[0].permitted | std::uint64_t(data[1].permitted) << 32U;
  const std::uint64_t all = entry.rights.capabilities & ours;
  const auto low = std::uint32_t(all);
  const auto high = std::uint32_t(all >> 32U);
  data = {{{low, low, 0}, {high, high, 0}}};
  return ::syscall(SYS_capset, &header, data.data()) < 0 ? errno : 0;
}

void check_access(const char* path, Depth depth, NodeReport& report) {
  if (report.lookup_error != 0 || !report.is_device()) {
    return;
  }
  report.access = ::access(path, R_OK | W_OK) < 0 ? errno : 0;
  if (depth == Depth::open && report.access == 0) {
    const int opened = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    report.open = opened < 0 ? errno : 0;
    if (opened >= 0) {
      ::close(opened);
    }
  }
}

// Runs in the child. The answer begins with the errno of entering the container, 0 on success.
void serve(int socket, const Entry& entry, const ProbeRequest& request, std::vector<NodeReport>& reports) {
  // Where the container shares the host's pid namespace, none of its processes may read the memory of this one.
  ::prctl(PR_SET_DUMPABLE, 0);
  const pid_t parent = ::getppid();
  int number = ::setns(entry.mounts.get(), CLONE_NEWNS) < 0 || ::fchdir(entry.root.get()) < 0 || ::chroot(".") < 0 ||
                       ::chdir("/") < 0
                   ? errno
                   : 0;
  for (std::size_t i = 0; number == 0 && i < request.paths.size(); ++i) {
    reports[i] = look_up_node(entry.root.get(), request.paths[i].c_str());
  }
  for (const Cgroup* cgroup : entry.cgroups) {
    number = number != 0 ? number : join_by_syscalls(*cgroup);
  }
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  constexpr int kOurs = 3;  // no descriptor of the host stays open when the child takes the container's rights
  if (socket != kOurs) {
    ::dup2(socket, kOurs);
  }
  for (const int file : {0, 1, 2}) {
    ::close(file);
  }
  ::close_range(kOurs + 1, ~0U, 0);
  number = number != 0 ? number : assume_rights(entry);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Kernel: a change of ids resets both
  if (::getppid() != parent) {
    ::_exit(0);
  }
  for (std::size_t i = 0; number == 0 && i < request.paths.size(); ++i) {
    check_access(request.paths[i].c_str(), request.depth, reports[i]);
  }
  (void)::send(kOurs, &number, sizeof(number), MSG_NOSIGNAL);
  (void)::send(kOurs, reports.data(), reports.size() * sizeof(NodeReport), MSG_NOSIGNAL);
}

bool receive(int socket, void* data, std::size_t size, std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd waiting{socket, POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, left.count() > 0 ? int(left.count()) : 0)) < 0 && errno == EINTR) {
  }
  return ready == 1 && ::recv(socket, data, size, 0) == ssize_t(size);
}

// A process that joins a frozen cgroup is frozen with it.
bool is_frozen(const CgroupsOfProcess& cgroups) {
  const Result<std::string> events =
      cgroups.v2 ? read_text(cgroups.v2->directory.get(), "cgroup.events") : Result<std::string>(std::string());
  return events && events->find("frozen 1") != std::string::npos;
}

class KernelNodeProber final : public NodeProber {
 public:
  explicit KernelNodeProber(const Host& host) : host_(host) {}

  Result<std::vector<NodeView>> probe(const ProbeRequest& request) override {
    const std::string what = "probe from inside, as process " + std::to_string(request.container.process().pid.value);
    if (is_frozen(request.container.actual())) {
      return fail(std::errc::device_or_resource_busy, what + ": the container is frozen");
    }
    const Entry entry = TRY(enter(request));
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) {
      return fail_errno(errno, what);
    }
    const Fd ours(ends[0]);
    Fd theirs(ends[1]);
    std::vector<NodeReport> reports(request.paths.size());
    Child child = Child::start([&] { serve(theirs.get(), entry, request, reports); });
    if (!child) {
      return fail_errno(errno, what);
    }
    theirs = Fd();
    const auto deadline = std::chrono::steady_clock::now() + request.limit;
    int number = 0;
    if (!receive(ours.get(), &number, sizeof(number), deadline) ||
        (!reports.empty() && !receive(ours.get(), reports.data(), reports.size() * sizeof(NodeReport), deadline))) {
      return fail(std::errc::timed_out, what + ": no answer in time (is it frozen, or does a file system hang?)");
    }
    child.end(Child::Grace::short_wait);
    if (number != 0) {
      return fail_errno(number, what);
    }
    TRY(request.container.check());
    return views_of(request, reports);
  }

  Result<std::vector<NodeView>> look_up(const ProbeRequest& request) override {
    const Fd root = TRY(request.container.open_root());
    const std::vector<NodeReport> reports = TRY(lookups_.look_up(root.get(), request.paths, request.limit));
    TRY(request.container.check());
    return views_of(request, reports);
  }

 private:
  static std::vector<NodeView> views_of(const ProbeRequest& request, const std::vector<NodeReport>& reports) {
    std::vector<NodeView> all;
    all.reserve(reports.size());
    for (std::size_t i = 0; i < reports.size(); ++i) {
      all.push_back(view_of(request.paths[i], reports[i]));
    }
    return all;
  }

  [[nodiscard]] Result<Entry> enter(const ProbeRequest& request) const {
    Entry entry;
    entry.mounts = TRY(request.container.open_mount_namespace());
    entry.root = TRY(request.container.open_root());
    entry.rights = TRY(read_rights(host_, request.container.process()));
    for (std::size_t i = 1; i < entry.rights.user.gids.size(); ++i) {
      entry.groups.push_back(entry.rights.user.gids[i]);
    }
    for (const std::optional<Cgroup>* cgroup : {&request.container.actual().v1, &request.container.actual().v2}) {
      if (*cgroup) {
        entry.cgroups.push_back(&**cgroup);
      }
    }
    return entry;
  }

  const Host& host_;
  LookupChild lookups_;
};

}  // namespace

std::unique_ptr<NodeProber> open_node_prober(const Host& host) { return std::make_unique<KernelNodeProber>(host); }

}  // namespace hf::kernel
