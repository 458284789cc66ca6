#include "kernel/container/lookup_child.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

constexpr std::size_t kMostBytes = 16 * 1024;
constexpr std::size_t kMostPaths = 512;
constexpr int kIdleMs = 1000;

// A message: paths that end with NUL, and the descriptor of their root.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

bool is_ready(int socket, int milliseconds) {
  pollfd waiting{socket, POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, milliseconds)) < 0 && errno == EINTR) {
  }
  return ready == 1;
}

// The bytes of the paths; 0 where the other end is gone. The descriptor is -1 where there is none.
std::size_t receive(int socket, std::array<char, kMostBytes>& text, int& root) {
  Control control;
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  root = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&root, CMSG_DATA(header), sizeof(root));
  }
  return size > 0 ? std::size_t(size) : 0;
}

// Runs in the child, by system calls alone.
void serve(int socket) {
  std::array<char, kMostBytes> text;
  std::array<NodeReport, kMostPaths> reports;
  while (is_ready(socket, kIdleMs)) {
    int root = -1;
    const std::size_t size = receive(socket, text, root);
    std::size_t count = 0;
    for (std::size_t at = 0; at < size && count < kMostPaths; at += std::strlen(text.data() + at) + 1) {
      reports[count++] = look_up_node(root, text.data() + at);
    }
    ::close(root);
    if (size == 0 || ::send(socket, reports.data(), count * sizeof(NodeReport), MSG_NOSIGNAL) < 0) {
      return;
    }
  }
}

}  // namespace

Result<void> LookupChild::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return fail_errno(errno, "look up device nodes");
  }
  socket_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  Child child = Child::start([&] {
    constexpr int kOurs = 3;  // it holds no other descriptor of the host
    if (theirs.get() != kOurs) {
      ::dup2(theirs.get(), kOurs);
    }
    ::close_range(kOurs + 1, ~0U, 0);
    serve(kOurs);
  });
  if (!child) {
    return fail_errno(errno, "look up device nodes");
  }
  child_.reset();
  child_.emplace(std::move(child));
  return {};
}

void LookupChild::stop() {
  socket_ = Fd();
  child_.reset();
}

bool LookupChild::send(int root, const std::string& text) const {
  Control control;
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(root));
  std::memcpy(CMSG_DATA(header), &root, sizeof(root));
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == ssize_t(text.size());
}

Result<std::vector<NodeReport>> LookupChild::look_up(int root, const std::vector<std::string>& paths,
                                                     std::chrono::milliseconds limit) {
  std::string text;
  for (const std::string& path : paths) {
    text += path + '\0';
  }
  if (paths.size() > kMostPaths || text.size() > kMostBytes) {
    return fail(std::errc::value_too_large, "look up " + std::to_string(paths.size()) + " device nodes at once");
  }
  std::vector<NodeReport> reports(paths.size());
  // The first child may have ended meanwhile, because nothing was asked; the second one has just been started.
  for (const bool is_last : {false, true}) {
    if (reports.empty()) {
      break;
    }
    if (!socket_) {
      TRY(start());
    }
    const bool is_sent = send(root, text);
    if (is_sent && !is_ready(socket_.get(), int(limit.count()))) {
      stop();
      return fail(std::errc::timed_out, "look up device nodes: no answer in time (does a file system hang?)");
    }
    const auto size = ssize_t(reports.size() * sizeof(NodeReport));
    if (is_sent && ::recv(socket_.get(), reports.data(), std::size_t(size), 0) == size) {
      break;
    }
    stop();
    if (is_last) {
      return fail(std::errc::io_error, "look up device nodes: the child has ended");
    }
  }
  return reports;
}

}  // namespace hf::kernel
