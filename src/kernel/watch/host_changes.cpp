#include "kernel/watch/host_changes.h"

#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hf::kernel {

Result<DriverEvents> DriverEvents::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;  // messages of the kernel, not of udev
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
    return fail_errno(errno, "uevents");
  }
  return DriverEvents(std::move(socket));
}

// Searches for messages such as "add@/module/nvidia_uvm" and ignores all others.
bool DriverEvents::take() {
  std::array<char, 8192> buffer{};
  bool changed = false;
  for (ssize_t size = 0; (size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0)) != 0;) {
    if (size < 0 && errno != ENOBUFS) {
      break;
    }
    const std::string_view message(buffer.data(), size > 0 ? std::size_t(size) : 0);
    const std::string_view head = message.substr(0, message.find('\0'));
    changed = changed || size < 0 || head.find("/module/") != std::string_view::npos ||
              head.find("/drm/") != std::string_view::npos || head.find("/infiniband") != std::string_view::npos ||
              message.find("SUBSYSTEM=drivers") != std::string_view::npos;
  }
  return changed;
}

Result<DirectoryEvents> DirectoryEvents::open() {
  Fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) {
    return fail_errno(errno, "watch directories");
  }
  return DirectoryEvents(std::move(inotify));
}

bool DirectoryEvents::add(const Host& host, const std::string& path) {
  const Fd directory(::openat(host.root.get(), below_root(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string fd_path = "/proc/self/fd/" + std::to_string(directory.get());
  constexpr std::uint32_t kChanges =
      IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ATTRIB | IN_DELETE_SELF | IN_ONLYDIR;
  return directory && ::inotify_add_watch(inotify_.get(), fd_path.c_str(), kChanges) >= 0;
}

bool DirectoryEvents::take() {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  bool changed = false;
  while (::read(inotify_.get(), buffer.data(), buffer.size()) > 0) {
    changed = true;
  }
  return changed;
}

}  // namespace hf::kernel
