#include "kernel/cgroup/cgroup.h"

#include <cerrno>
#include <memory>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

using container::CgroupPath;
using container::Hierarchy;

std::string join(const std::string& point, const CgroupPath& path) {
  return path.is_root() ? point : (point == "/" ? "" : point) + path.text;
}

Result<Cgroup> make_cgroup(Fd directory, Hierarchy hierarchy, CgroupPath path, const std::string& where) {
  struct stat status{};
  if (::fstat(directory.get(), &status) < 0) {
    return fail_errno(errno, "stat cgroup " + where);
  }
  return Cgroup{std::move(directory), {status.st_ino}, hierarchy, std::move(path), printable(where)};
}

Result<std::vector<std::string>> names_of_children(const Cgroup& cgroup) {
  // fdopendir takes ownership of the descriptor, so it gets a copy.
  const int copy = ::openat(cgroup.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) {
    return fail_errno(errno, "open " + cgroup.where);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(copy), ::closedir);
  if (!directory) {
    const int number = errno;
    ::close(copy);
    return fail_errno(number, "list " + cgroup.where);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  if (errno != 0) {
    return fail_errno(errno, "list " + cgroup.where);
  }
  return names;
}

bool is_gone(std::errc code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::no_such_device;
}

struct Walk {
  const std::function<Result<void>(const Cgroup&)>& visit;
  std::size_t left_out = 0;
};

Result<void> walk_below(const Cgroup& start, Walk& walk, int depth) {
  // Each level costs a descriptor, and a user who owns a cgroup may nest cgroups as deep as the kernel allows.
  constexpr int kDeepest = 256;
  if (depth > kDeepest) {
    ++walk.left_out;
    return {};
  }
  TRY(walk.visit(start));
  const Result<std::vector<std::string>> names = names_of_children(start);
  if (!names) {
    return is_gone(names.error().code) ? Result<void>() : std::unexpected(names.error());
  }
  for (const std::string& name : *names) {
    Fd directory(::openat(start.directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!directory) {
      if (is_gone(std::errc(errno))) {
        continue;
      }
      return fail_errno(errno, "open cgroup " + start.where + "/" + name);
    }
    const Result<Cgroup> child =
        make_cgroup(std::move(directory), start.hierarchy, start.path.child(name), start.where + "/" + name);
    if (child) {
      TRY(walk_below(*child, walk, depth + 1));
    }
  }
  return {};
}

}  // namespace

Result<Cgroup> open_cgroup(const Host& host, Hierarchy hierarchy, const CgroupPath& path) {
  const std::optional<container::CgroupMount>& mount = host.mount_of(hierarchy);
  if (!mount) {
    return fail(std::errc::no_such_device, std::string("open cgroup ") + path.text + ": cgroup " +
                                               (hierarchy == Hierarchy::v1 ? "v1 devices" : "v2") + " is not mounted");
  }
  const std::string where = join(mount->point, path);
  Fd directory(::openat(host.root.get(), below_root(where).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return fail_errno(errno, "open cgroup " + where);
  }
  return make_cgroup(std::move(directory), hierarchy, path, where);
}

int join_by_syscalls(const Cgroup& cgroup) {
  const int file = ::openat(cgroup.directory.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC);
  if (file < 0) {
    return errno;
  }
  const int number = ::write(file, "0", 1) == 1 ? 0 : errno;
  ::close(file);
  return number;
}

Result<Cgroup> open_root(const Host& host, Hierarchy hierarchy) { return open_cgroup(host, hierarchy, CgroupPath()); }

bool is_owned_by_user(const Cgroup& cgroup) {
  struct stat status{};
  return ::fstat(cgroup.directory.get(), &status) == 0 && status.st_uid != 0 && status.st_uid != ::geteuid();
}

Result<Cgroup> open_parent(const Cgroup& cgroup) {
  Fd directory = TRY(open_directory(cgroup.directory.get(), ".."));
  return make_cgroup(std::move(directory), cgroup.hierarchy, cgroup.path.parent(),
                     cgroup.where.substr(0, cgroup.where.rfind('/')));
}

Cgroup duplicate(const Cgroup& cgroup) {
  Fd directory(::fcntl(cgroup.directory.get(), F_DUPFD_CLOEXEC, 0));
  return {std::move(directory), cgroup.id, cgroup.hierarchy, cgroup.path, cgroup.where};
}

CgroupsOfProcess duplicate(const CgroupsOfProcess& cgroups) {
  CgroupsOfProcess same;
  if (cgroups.v1) {
    same.v1 = duplicate(*cgroups.v1);
  }
  if (cgroups.v2) {
    same.v2 = duplicate(*cgroups.v2);
  }
  return same;
}

Result<CgroupsOfProcess> open_cgroups_of(const Host& host, container::Pid pid) {
  const Result<ProcessHandle> process = hold_process(host, pid);
  if (!process) {
    return fail(std::errc::no_such_process, "find process " + std::to_string(pid.value) + ": no such process");
  }
  return open_cgroups_of(host, *process);
}

Result<CgroupsOfProcess> open_cgroups_of(const Host& host, const ProcessHandle& process) {
  const std::string name = "process " + std::to_string(process.pid.value);
  const std::string lines = read_cgroup_lines(process);
  const Result<Process> state = read_process(process);
  // Kernel: the cgroup of a zombie may be removed before the zombie is reaped; the cgroup of a living process never is.
  if (lines.empty() || (state && state->has_ended)) {
    return fail(std::errc::no_such_process, "find the cgroups of " + name + ": it has ended");
  }
  const container::Membership membership = container::parse_membership(lines);
  CgroupsOfProcess cgroups;
  if (host.v1 && membership.v1) {
    cgroups.v1 = TRY(open_cgroup(host, Hierarchy::v1, TRY(path_below(*host.v1, *membership.v1))));
  }
  if (host.v2 && membership.v2) {
    cgroups.v2 = TRY(open_cgroup(host, Hierarchy::v2, TRY(path_below(*host.v2, *membership.v2))));
  }
  if (!cgroups.v1 && !cgroups.v2) {
    return fail(std::errc::no_such_device,
                "find the cgroups of " + name + ": /proc names none that decides about devices");
  }
  if (read_cgroup_lines(process) != lines) {
    return fail(std::errc::resource_unavailable_try_again, "find the cgroups of " + name + ": it has moved meanwhile");
  }
  return cgroups;
}

Result<std::size_t> walk(const Cgroup& start, const std::function<Result<void>(const Cgroup&)>& visit) {
  Walk walk{visit};
  TRY(walk_below(start, walk, 0));
  return walk.left_out;
}

}  // namespace hf::kernel
