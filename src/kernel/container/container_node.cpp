#include "kernel/container/container_node.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "kernel/process/privileges.h"
#include "kernel/process/subprocess.h"

namespace hf::kernel {
namespace {

// Everything the child needs, opened before it enters the container's mount namespace.
struct Entry {
  Fd mounts;
  Fd root;                          // of the container's first process
  Fd proc;                          // our own /proc
  std::vector<std::string> shared;  // "major:minor" of the file systems that the host has mounted
  bool has_engines_root = false;    // true where only an engine can have chosen its root directory
};

Result<std::vector<std::string>> read_mounted(const Host& host) {
  const std::string text = TRY(read_text(host.root.get(), "proc/self/mountinfo"));
  std::vector<std::string> mounted;
  for (const std::string_view line : split(std::string_view(text), '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    if (fields.size() > 2) {
      mounted.emplace_back(fields[2]);
    }
  }
  return mounted;
}

struct Place {
  struct statx status{};
  bool is_known = false;
};

Place place_of(const Fd& file) {
  Place place;
  constexpr unsigned kWanted = STATX_INO | STATX_MNT_ID;
  place.is_known = ::statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, kWanted, &place.status) == 0 &&
                   (place.status.stx_mask & kWanted) == kWanted;
  return place;
}

bool is_same(const Place& a, const Place& b) {
  return a.is_known && b.is_known && a.status.stx_mnt_id == b.status.stx_mnt_id && a.status.stx_ino == b.status.stx_ino;
}

// The file system of a mount in the current mount namespace, as mountinfo names it; stat(2) may report other numbers
// (btrfs).
Result<std::string> file_system_of(const Entry& entry, const Place& place) {
  const std::string text = TRY(read_text(entry.proc.get(), "thread-self/mountinfo"));
  const std::string id = std::to_string(place.status.stx_mnt_id);
  for (const std::string_view line : split(std::string_view(text), '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    if (fields.size() > 2 && fields[0] == id) {
      return std::string(fields[2]);
    }
  }
  return fail(std::errc::no_such_file_or_directory, "find the mount of the directory");
}

// Opens the directory for the node and checks that it belongs to the container alone: engines mount a tmpfs on /dev, or
// /dev is part of the root file system. Any other file system that the host has mounted too may be a volume. A process
// in a user namespace of its own could make any of them its root.
Result<Fd> open_directory_for(const Entry& entry, const std::string& path) {
  const Fd top(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!is_same(place_of(top), place_of(entry.root))) {
    return fail(std::errc::operation_not_permitted, "the container's first process has changed its root directory");
  }
  Fd directory = TRY(open_plain_inside(entry.root.get(), path, O_RDONLY | O_DIRECTORY));
  const Place place = place_of(directory);
  if (place.is_known && entry.has_engines_root && place.status.stx_mnt_id == place_of(entry.root).status.stx_mnt_id) {
    return directory;
  }
  if (!place.is_known || std::ranges::find(entry.shared, TRY(file_system_of(entry, place))) != entry.shared.end()) {
    return fail(std::errc::operation_not_permitted, path + " there is on a file system of the host");
  }
  return directory;
}

// Creates the node under a temporary name and renames it, so that other processes find the old node or the new one.
Result<void> replace_node(const Entry& entry, const Fd& directory, const NewNode& node) {
  const std::string name(base_name(node.path));
  const std::string temporary = "." + name + ".holdfast";
  (void)::unlinkat(directory.get(), temporary.c_str(), 0);
  const mode_t kind = node.device.kind == device::Kind::block ? S_IFBLK : S_IFCHR;
  const dev_t number = makedev(node.device.major, node.device.minor);
  constexpr mode_t kClosed = 0;  // not accessible until it has its owner
  if (::mknodat(directory.get(), temporary.c_str(), kind | kClosed, number) < 0) {
    return fail_errno(errno, "create a node");
  }
  const Fd made(::openat(directory.get(), temporary.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  const bool is_ours = made && ::fstat(made.get(), &status) == 0 && status.st_mode == kind && status.st_rdev == number;
  const container::Permissions& wanted = node.permissions;
  const std::string fd_path = "self/fd/" + std::to_string(made.get());
  constexpr mode_t kBits = 0777;  // set regardless of the umask
  if (!is_ours || ::fchownat(made.get(), "", wanted.uid, wanted.gid, AT_EMPTY_PATH) < 0 ||
      ::fchmodat(entry.proc.get(), fd_path.c_str(), wanted.mode & kBits, 0) < 0) {
    const int why = is_ours ? errno : EBUSY;
    (void)::unlinkat(directory.get(), temporary.c_str(), 0);
    return fail_errno(why, "create a node");
  }
  int renamed = ::renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str());
  if (renamed < 0 && errno == EISDIR && ::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0) {
    renamed = ::renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str());
  }
  if (renamed < 0) {
    const int why = errno;  // EBUSY: something is mounted there
    (void)::unlinkat(directory.get(), temporary.c_str(), 0);
    return fail_errno(why, "replace what is there");
  }
  return {};
}

// Runs in the child.
Result<std::string> make_inside(const Entry& entry, const NewNode& node) {
  if (::setns(entry.mounts.get(), CLONE_NEWNS) < 0) {
    return fail_errno(errno, "enter its mount namespace");
  }
  const Fd directory = TRY(open_directory_for(entry, node.path.substr(0, node.path.rfind('/'))));
  TRY(limit_capabilities(capability(CAP_MKNOD) | capability(CAP_CHOWN) | capability(CAP_FOWNER) |
                         capability(CAP_DAC_OVERRIDE)));
  TRY(restrict_system_calls({.may_make_nodes = true}));
  TRY(replace_node(entry, directory, node));
  return std::string();
}

}  // namespace

Result<void> make_node_in(const Host& host, const ContainerHandle& container, const NewNode& node,
                          std::chrono::milliseconds limit) {
  const std::string what =
      "make " + node.path + " in the container of process " + std::to_string(container.process().pid.value) + ": ";
  const std::string name(base_name(node.path));
  if (!node.path.starts_with('/') || node.path.rfind('/') == 0 || name.empty() || name == "." || name == "..") {
    return fail(std::errc::invalid_argument, what + "want a path such as /dev/name");
  }
  const std::vector<std::uint64_t> of_host = read_host_mount_namespaces(host);
  if (std::ranges::find(of_host, read_namespace(container.process(), "mnt")) != of_host.end()) {
    return fail(std::errc::operation_not_permitted, what + "it has no mount namespace of its own");
  }
  Entry entry;
  entry.mounts = TRY(container.open_mount_namespace());
  entry.root = TRY(container.open_root());
  entry.proc = TRY(open_directory(AT_FDCWD, "/proc"));
  entry.shared = TRY(read_mounted(host));
  entry.has_engines_root = read_namespace(container.process(), "user") == read_own_namespace(host, "user");
  TRY(container.check());
  const Result<std::string> made = run_result_in_subprocess([&](int) { return make_inside(entry, node); }, limit);
  return made ? Result<void>() : fail(made.error().code, what + made.error().message);
}

}  // namespace hf::kernel
