#include "services/plugin/plugin.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "services/plugin/socket_name.h"

namespace hf::plugin {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kNever = kernel::EventLoop::kNever;
constexpr std::uint64_t kShortestPause = 100 * kMillisecond;
constexpr std::uint64_t kLongestPause = 30'000 * kMillisecond;
constexpr std::uint64_t kLookAgain = 1'000 * kMillisecond;     // for a directory that does not exist
constexpr std::uint64_t kUntilStream = 10'000 * kMillisecond;  // kubelet reads the list soon after a registration

struct FileId {
  std::uint64_t inode = 0;  // 0: there is none
  std::uint64_t changed = 0;
};
FileId read_id(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) < 0) {
    return {};
  }
  return {status.st_ino, std::uint64_t(status.st_mtim.tv_sec) * 1'000'000'000U + std::uint64_t(status.st_mtim.tv_nsec)};
}

}  // namespace

Plugin::Plugin(kernel::EventLoop& loop, PluginSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      prefix_(socket_prefix(settings_.resource)),
      socket_name_(prefix_ + random_suffix()) {
  Rpc::Handlers handlers = settings_.handlers;
  handlers.stream_opened = [this] {
    pause_ = 0;
    last_problem_.clear();
    due_ = kNever;
    settings_.log("connected resource=" + settings_.resource, false);
  };
  handlers.stream_ended = [this] {
    if (rpc_->streams() == 0) {
      settings_.log("disconnected resource=" + settings_.resource, false);
      pause_ = std::clamp(pause_ * 2, kShortestPause, kLongestPause);
      due_ = kernel::monotonic_now() + pause_;
    }
  };
  handlers.registered = [this](bool is_registered, const std::string& error) {
    if (!is_registered) {
      note("kubelet refuses it: " + error);
    }
  };
  rpc_ = std::make_unique<Rpc>(loop_, settings_.resource, path(), std::move(handlers));
}

Plugin::~Plugin() {
  *is_alive_ = false;
  close_socket();
}

void Plugin::work(std::uint64_t now) {
  if (now < due_) {
    return;
  }
  due_ = kNever;
  if (settings_.is_found) {
    show_socket(now);
    return;
  }
  if (!listener_) {
    open_socket(now);
  }
  if (listener_ && !is_connected()) {
    start_registration(now);
  }
}

// kubelet looks at a socket when it appears: one whose list it does not read is made again.
void Plugin::show_socket(std::uint64_t now) {
  if (listener_ && is_connected()) {
    return;
  }
  if (listener_ && has_newer_sibling()) {
    due_ = now + kLongestPause;
    return;
  }
  close_socket();
  open_socket(now);
  due_ = std::min(due_, now + std::max(pause_, kUntilStream));
}

void Plugin::open_socket(std::uint64_t now) {
  remove_dead_siblings();
  Result<kernel::UnixListener> listener = kernel::UnixListener::open(path());
  if (!listener) {
    note(listener.error().message);
    due_ = now + kLookAgain;
    return;
  }
  (void)::chmod(path().c_str(), 0600);
  listener_.emplace(*std::move(listener));
  socket_inode_ = read_id(path()).inode;
  const Result<void> watched = loop_.watch(listener_->fd().get(), [this] {
    while (Result<kernel::Fd> client = kernel::accept_one(listener_->fd().get())) {
      rpc_->accept(*std::move(client));
    }
  });
  if (!watched) {
    note(watched.error().message);
    close_socket();
    due_ = now + kLookAgain;
  }
}

void Plugin::close_socket() {
  if (listener_) {
    loop_.unwatch(listener_->fd().get());
    listener_.reset();
  }
}

// An instance that was replaced must not register again: kubelet has ended its list because there is a newer one, and
// both would take turns for ever.
bool Plugin::has_newer_sibling() const {
  const FileId own = read_id(path());
  const kernel::Fd directory(::open(settings_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return std::ranges::any_of(kernel::list_names(directory.get(), "."), [&](const std::string& name) {
    const std::string other = settings_.directory + "/" + name;
    return is_socket_of(prefix_, name) && name != socket_name_ && read_id(other).changed > own.changed &&
           kernel::connect_unix(other).has_value();
  });
}

// A killed instance leaves its socket behind.
void Plugin::remove_dead_siblings() const {
  const kernel::Fd directory(::open(settings_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const std::string& name : directory ? kernel::list_names(directory.get(), ".") : std::vector<std::string>()) {
    const std::string other = settings_.directory + "/" + name;
    if (!is_socket_of(prefix_, name) || name == socket_name_) {
      continue;
    }
    const Result<kernel::Fd> connected = kernel::connect_unix(other);
    if (!connected && connected.error().code == std::errc::connection_refused) {
      (void)::unlink(other.c_str());
    }
  }
}

void Plugin::start_registration(std::uint64_t now) {
  const FileId kubelet_socket = read_id(kubelet());
  if (is_registering_ || kubelet_socket.inode == 0) {
    return;  // check_directory notices when kubelet comes
  }
  if (has_newer_sibling()) {
    due_ = now + kLongestPause;
    return;
  }
  is_registering_ = true;
  kubelet_inode_ = kubelet_socket.inode;
  register_with_kubelet(loop_, {kubelet(), socket_name_, settings_.resource},
                        [this, is_alive = is_alive_](const Result<void>& done) {
                          if (*is_alive) {
                            finish_registration(done);
                          }
                        });
}

void Plugin::finish_registration(const Result<void>& done) {
  is_registering_ = false;
  const std::uint64_t now = kernel::monotonic_now();
  if (done) {
    settings_.log("registered resource=" + settings_.resource, false);
    due_ = is_connected() ? kNever : now + kUntilStream;
    return;
  }
  note(done.error().message);
  pause_ = std::clamp(pause_ * 2, kShortestPause, kLongestPause);
  due_ = std::min(due_, now + pause_);
}

void Plugin::check_directory(std::uint64_t now) {
  if (listener_ && read_id(path()).inode != socket_inode_) {
    close_socket();
    due_ = now;
  }
  const std::uint64_t kubelet_inode = read_id(kubelet()).inode;
  if (kubelet_inode != kubelet_inode_ && kubelet_inode != 0 && !settings_.is_found) {
    pause_ = 0;
    due_ = now;
  }
  if (!listener_ || (!settings_.is_found && !is_connected() && !is_registering_)) {
    due_ = std::min(due_, now + kShortestPause);
  }
}

void Plugin::note(const std::string& problem) {
  if (problem != last_problem_) {
    last_problem_ = problem;
    settings_.log("not-registered resource=" + settings_.resource + " error=" + quote(problem), true);
  }
}

void Plugin::stop(std::function<void()> stopped) {
  close_socket();
  due_ = kNever;
  rpc_->stop(std::move(stopped));
}

}  // namespace hf::plugin
