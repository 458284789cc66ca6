#include "kernel/container/probe.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/files/private_tmpfs.h"

namespace hf::kernel {
namespace {

using device::Access;
using device::Request;

constexpr int kTimeoutMs = 5000;  // in a frozen cgroup the probe is frozen too

struct Question {
  std::uint32_t kind;
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t access;
};

mode_t mode_of(std::uint32_t kind) { return kind == std::uint32_t(device::Kind::block) ? S_IFBLK : S_IFCHR; }

// Runs in the child, which makes only system calls from here on.
int answer(const Question& question) {
  const auto wants = [&](Access bit) { return (question.access & std::uint32_t(bit)) != 0; };
  const int mode = (wants(Access::read) ? R_OK : 0) | (wants(Access::write) ? W_OK : 0);
  if (mode != 0 && ::access("node", mode) < 0) {
    return errno;
  }
  if (wants(Access::mknod)) {
    if (::mknod("made", mode_of(question.kind) | 0600, makedev(question.major, question.minor)) < 0) {
      return errno;
    }
    ::unlink("made");
  }
  return 0;
}

[[noreturn]] void serve(int socket, int directory, pid_t parent, const std::vector<const Cgroup*>& cgroups) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int number = ::getppid() != parent ? ESRCH : ::fchdir(directory) < 0 ? errno : 0;
  for (const Cgroup* cgroup : cgroups) {
    number = number != 0 ? number : join_by_syscalls(*cgroup);
  }
  // No descriptor of the parent stays open, in particular not its end of the socket.
  constexpr int kOurs = 3;
  if (socket != kOurs) {
    ::dup2(socket, kOurs);
  }
  ::close_range(kOurs + 1, ~0U, 0);
  while (::write(kOurs, &number, sizeof(number)) == sizeof(number)) {
    Question question{};
    if (::read(kOurs, &question, sizeof(question)) != sizeof(question)) {
      break;
    }
    number = answer(question);
  }
  ::_exit(0);
}

Result<int> receive(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  int number = 0;
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, kTimeoutMs)) < 0 && errno == EINTR) {
  }
  if (ready != 1 || ::read(socket, &number, sizeof(number)) != sizeof(number)) {
    return fail(std::errc::timed_out, "probe the cgroup: no answer (is it frozen?)");
  }
  return number;
}

}  // namespace

Result<Probe> Probe::start(const std::vector<const Cgroup*>& cgroups) {
  Fd directory = TRY(make_private_tmpfs("64k", DeviceNodes::usable));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return fail_errno(errno, "talk to the probe");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    serve(theirs.get(), directory.get(), parent, cgroups);
  }
  if (child < 0) {
    return fail_errno(errno, "start the probe");
  }
  Probe probe(child, std::move(ours), std::move(directory));
  if (const int number = TRY(receive(probe.questions_.get())); number != 0) {
    return fail_errno(number, "join " + cgroups.front()->where + " with a probe");
  }
  return probe;
}

Probe::Probe(Probe&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      questions_(std::move(other.questions_)),
      directory_(std::move(other.directory_)) {}

Probe::~Probe() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<bool> Probe::ask(const Request& request) {
  const device::Device& device = request.device;
  if (device.major > device::kLastMajor || device.minor > device::kLastMinor) {
    return fail(std::errc::invalid_argument, "probe " + to_string(request) + ": no device node can have such numbers");
  }
  if (!questions_) {
    return fail(std::errc::timed_out, "probe the cgroup: it gave no answer before (is it frozen?)");
  }
  constexpr const char* kNode = "node";
  // Created here, outside the cgroup, which may refuse mknod. All permission bits are set, so only the cgroup decides.
  if (::mknodat(directory_.get(), kNode, mode_of(std::uint32_t(device.kind)) | 0666,
                makedev(device.major, device.minor)) < 0) {
    return fail_errno(errno, "make a device node to probe " + to_string(request));
  }
  const Question question{std::uint32_t(device.kind), device.major, device.minor, std::uint32_t(request.access)};
  if (::write(questions_.get(), &question, sizeof(question)) != sizeof(question)) {
    return fail_errno(errno, "ask the probe");
  }
  const Result<int> answer = receive(questions_.get());
  ::unlinkat(directory_.get(), kNode, 0);
  if (!answer) {
    questions_ = Fd();  // so that a late answer is never taken for the answer to the next question
    return std::unexpected(answer.error());
  }
  const int number = *answer;
  if (number != 0 && number != EPERM) {
    return fail_errno(number, "probe " + to_string(request));
  }
  return number == 0;
}

}  // namespace hf::kernel
