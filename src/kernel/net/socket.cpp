#include "kernel/net/socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/text.h"

namespace hf::kernel {
namespace {

constexpr int kBacklog = 512;
constexpr ::mode_t kMode = 0660;

struct HostAndPort {
  std::string host;
  std::string port;
};

Result<HostAndPort> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || !parse_number<std::uint16_t>(address.substr(colon + 1))) {
    return fail(std::errc::invalid_argument,
                "address " + quote(address) + ": want HOST:PORT, with a port from 0 to 65535");
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  return HostAndPort{host == "localhost" ? "127.0.0.1" : host, address.substr(colon + 1)};
}

Result<Fd> listen_at(const ::addrinfo& found, const std::string& address) {
  Fd socket(::socket(found.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    return fail_errno(errno, "make a socket for " + address);
  }
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (found.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), found.ai_addr, found.ai_addrlen) < 0 || ::listen(socket.get(), kBacklog) < 0) {
    return fail_errno(errno, "listen on " + address);
  }
  return socket;
}

Result<::sockaddr_un> name_for(const std::string& path) {
  ::sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path) {
    return fail(std::errc::filename_too_long, "socket " + quote(path) + ": no path a socket can have");
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

template <class Address>
const ::sockaddr* plain(const Address& address) {
  return reinterpret_cast<const ::sockaddr*>(&address);
}

// Removes an old socket of the same user from the path. Fails where anything else is there.
Result<void> clear_path(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) < 0) {
    return errno == ENOENT ? Result<void>() : fail_errno(errno, "look at " + path);
  }
  if (!S_ISSOCK(status.st_mode) || status.st_uid != ::geteuid()) {
    return fail(std::errc::file_exists, "listen on " + path + ": there is something that is no socket of ours");
  }
  if (connect_unix(path)) {
    return fail(std::errc::address_in_use, "listen on " + path + ": another process listens there already");
  }
  if (::unlink(path.c_str()) < 0 && errno != ENOENT) {
    return fail_errno(errno, "remove the old socket " + path);
  }
  return {};
}

// Sets group and mode through a handle, because the path may name something else a moment later. Returns the inode.
Result<std::uint64_t> set_permissions(const std::string& path) {
  const Fd handle(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!handle || ::fstat(handle.get(), &status) < 0) {
    return fail_errno(errno, "look at " + path);
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(std::errc::file_exists, path + " is no socket any more");
  }
  ::group entry{};
  ::group* found = nullptr;
  std::array<char, 4096> buffer{};
  ::getgrnam_r("holdfast", &entry, buffer.data(), buffer.size(), &found);
  // Without the capability the socket stays root's alone.
  if (found != nullptr && ::fchownat(handle.get(), "", uid_t(-1), found->gr_gid, AT_EMPTY_PATH) < 0 && errno != EPERM) {
    return fail_errno(errno, "give " + path + " to the group holdfast");
  }
  // fchmod does not accept a descriptor opened with O_PATH.
  if (::chmod(("/proc/self/fd/" + std::to_string(handle.get())).c_str(), kMode) < 0) {
    return fail_errno(errno, "set the mode of " + path);
  }
  return status.st_ino;
}

}  // namespace

Result<void> check_address(const std::string& address) {
  TRY(parse_address(address));
  return {};
}

Result<Fd> listen_tcp(const std::string& address) {
  const HostAndPort where = TRY(parse_address(address));
  ::addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  ::addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(where.host.empty() ? nullptr : where.host.c_str(), where.port.c_str(), &wanted, &found);
  if (failed != 0) {
    return fail(std::errc::invalid_argument, "address " + quote(address) + ": " + ::gai_strerror(failed));
  }
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  Result<Fd> socket = listen_at(*list, address);
  for (const ::addrinfo* next = list->ai_next; !socket && next != nullptr; next = next->ai_next) {
    socket = listen_at(*next, address);
  }
  return socket;
}

Result<std::string> bound_address(const Fd& socket) {
  ::sockaddr_storage name{};
  ::socklen_t length = sizeof name;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(socket.get(), reinterpret_cast<::sockaddr*>(&name), &length) < 0) {
    return fail_errno(errno, "ask a socket for its address");
  }
  if (::getnameinfo(plain(name), length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return fail(std::errc::invalid_argument, "a socket has no address");
  }
  const std::string text = host.data();
  return (name.ss_family == AF_INET6 ? "[" + text + "]" : text) + ":" + port.data();
}

Result<UnixListener> UnixListener::open(const std::string& path) {
  const ::sockaddr_un name = TRY(name_for(path));
  TRY(clear_path(path));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // The mode is set before the socket has a path, so that the mode is never wider.
  if (!socket || ::fchmod(socket.get(), kMode) < 0) {
    return fail_errno(errno, "make a socket for " + path);
  }
  if (::bind(socket.get(), plain(name), sizeof name) < 0) {
    return fail_errno(errno, "listen on " + path);
  }
  UnixListener listener(std::move(socket), path);
  listener.inode_ = TRY(set_permissions(path));
  if (::listen(listener.fd_.get(), kBacklog) < 0) {
    return fail_errno(errno, "listen on " + path);
  }
  return listener;
}

UnixListener::UnixListener(UnixListener&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, "")), inode_(other.inode_) {}

UnixListener::~UnixListener() {
  struct stat status{};
  if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

Result<Fd> connect_unix(const std::string& path) {
  const ::sockaddr_un name = TRY(name_for(path));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), plain(name), sizeof name) < 0) {
    return fail_errno(errno, "connect to " + path);
  }
  return socket;
}

Result<Fd> accept_one(int listener) {
  Fd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    return fail_errno(errno, "accept a connection");
  }
  return socket;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace hf::kernel
