// HostChanges: events of drivers that come and go, and of files in directories.
#pragma once

#include <string>

#include "core/base/result.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// The kernel's uevents about modules, drivers, GPUs and RDMA devices.
class DriverEvents {
 public:
  static Result<DriverEvents> open();

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  bool take();  // true: there was one since the last call

 private:
  explicit DriverEvents(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;  // netlink
};

class DirectoryEvents {
 public:
  static Result<DirectoryEvents> open();

  [[nodiscard]] int descriptor() const { return inotify_.get(); }
  // Returns false for a missing directory. One that is watched already stays watched.
  bool add(const Host& host, const std::string& path);
  bool take();  // true: a file was created, written, renamed or removed since the last call

 private:
  explicit DirectoryEvents(Fd inotify) : inotify_(std::move(inotify)) {}

  Fd inotify_;
};

}  // namespace hf::kernel
