// Socket: listening at an address and at a path, and moving bytes without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

Result<Fd> listen_tcp(const std::string& address);    // "127.0.0.1:9465", "[::1]:0"; ":9465": on every address
Result<std::string> bound_address(const Fd& socket);  // with the port it really has

// A socket at a path, for root and the group "holdfast" where there is one (0660). The path is removed with it.
class UnixListener {
 public:
  // Takes the place of a socket that we left behind; of nothing else, and not of one somebody still listens on.
  static Result<UnixListener> open(const std::string& path);

  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  [[nodiscard]] const Fd& fd() const { return fd_; }

 private:
  UnixListener(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;  // "" once moved from
  std::uint64_t inode_ = 0;
};

Result<Fd> connect_unix(const std::string& path);

// None of these waits: where there is nothing to do, the error is std::errc::resource_unavailable_try_again.
Result<Fd> accept_one(const Fd& listener);
Result<std::size_t> receive(const Fd& socket, std::span<char> room);      // 0: the other side has ended
Result<std::size_t> send_some(const Fd& socket, std::string_view bytes);  // never raises SIGPIPE
void end_sending(const Fd& socket);
void limit_send_buffer(const Fd& socket, int bytes);  // so that a slow reader is noticed early

std::string own_host_name();

}  // namespace hf::kernel
