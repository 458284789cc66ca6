#include "kernel/watch/cgroup_writes.h"

#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/files/clock.h"

namespace hf::kernel {

Result<CgroupWrites> CgroupWrites::open(const Host& host, const std::string& mount) {
  Fd queue(::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC));
  if (!queue) {
    return fail_errno(errno, "fanotify");
  }
  const std::string point = below_root(mount);
  if (::fanotify_mark(queue.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_MODIFY, host.root.get(), point.c_str()) <
      0) {
    return fail_errno(errno, "watch writes to " + mount);
  }
  return CgroupWrites(std::move(queue));
}

void CgroupWrites::take(std::vector<CgroupWrite>& writes) {
  alignas(fanotify_event_metadata) char buffer[8192];
  const pid_t own = ::getpid();
  // Bounded, because users write to cgroups of their own; the descriptor stays readable.
  constexpr int kMostReads = 16;
  for (int reads = 0; reads < kMostReads; ++reads) {
    ssize_t size = ::read(queue_.get(), buffer, sizeof(buffer));
    const std::uint64_t now = monotonic_now();
    if (size < 0 && (errno == ENOENT || errno == ENODEV || errno == EINTR)) {
      continue;  // the file was removed with its cgroup; the next write may be to another file
    }
    if (size < 0 && errno != EAGAIN) {
      writes.push_back({0, {}, now, true});  // the file is unknown, as too many files are open
    }
    if (size <= 0) {
      return;  // nothing left
    }
    for (auto* event = reinterpret_cast<fanotify_event_metadata*>(buffer); FAN_EVENT_OK(event, size);
         event = FAN_EVENT_NEXT(event, size)) {
      const Fd file(event->fd);
      struct stat status{};
      if ((event->mask & FAN_Q_OVERFLOW) != 0) {
        writes.push_back({0, {}, now, true});
      } else if (event->pid != own && file && ::fstat(file.get(), &status) == 0) {
        writes.push_back({status.st_ino, container::Pid{event->pid}, now, false});
      }
    }
  }
}

}  // namespace hf::kernel
