// Socket: listens on TCP addresses and unix socket paths, and accepts clients.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

Result<void> check_address(const std::string& address);  // is it HOST:PORT?
Result<Fd> listen_tcp(const std::string& address);       // "127.0.0.1:9465", "[::1]:0"; ":9465": on every address
Result<std::string> bound_address(const Fd& socket);     // with the actual port

// A unix socket for root and the group "holdfast", where there is such a group (0660). Its path is removed with it.
class UnixListener {
 public:
  // Replaces a socket left by an earlier process of the same user, but nothing else, and no socket still in use.
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

// Does not wait: where no client waits either, the error is std::errc::resource_unavailable_try_again.
Result<Fd> accept_one(int listener);

std::string own_host_name();

}  // namespace hf::kernel
