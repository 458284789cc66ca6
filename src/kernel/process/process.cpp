#include "kernel/process/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

using container::Pid;

constexpr std::uint64_t kDacOverride = 1;  // CAP_DAC_OVERRIDE
constexpr int kFieldsAfterName = 20;       // of /proc/PID/stat, up to the start time
constexpr std::size_t kLongestCommand = 4096;

std::string directory_of(Pid pid) { return "proc/" + std::to_string(pid.value); }

std::vector<std::uint32_t> numbers_in(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  for (const std::string_view field : split_fields(text)) {
    if (const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(field)) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

std::string_view value_of(std::string_view status, std::string_view key) {
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':') {
      return trim(line.substr(key.size() + 1));
    }
  }
  return {};
}

std::string link_at(int directory, const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t size = ::readlinkat(directory, path.c_str(), buffer.data(), buffer.size());
  return size < 0 ? std::string() : std::string(buffer.data(), std::size_t(size));
}

std::uint64_t namespace_at(int directory, const std::string& path) {
  const std::string link = link_at(directory, path);  // "mnt:[4026531841]"
  const std::size_t open = link.find('[');
  if (open == std::string::npos || !link.ends_with(']')) {
    return 0;
  }
  return parse_number<std::uint64_t>(std::string_view(link).substr(open + 1, link.size() - open - 2)).value_or(0);
}

Result<Process> parse_stat(Pid pid, const std::string& text) {
  // The name is in parentheses and may contain any characters, including parentheses.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  const std::vector<std::string_view> fields = close == std::string::npos
                                                   ? std::vector<std::string_view>()
                                                   : split_fields(std::string_view(text).substr(close + 1));
  if (open == std::string::npos || fields.size() < kFieldsAfterName) {
    return fail(std::errc::invalid_argument, "read the state of process " + std::to_string(pid.value));
  }
  const std::uint32_t parent = parse_number<std::uint32_t>(fields[1]).value_or(0);
  const std::uint64_t started = parse_number<std::uint64_t>(fields[kFieldsAfterName - 1]).value_or(0);
  const bool has_ended = fields[0] == "Z" || fields[0] == "X" || fields[0] == "x";
  return Process{
      pid, {std::int32_t(parent)}, text.substr(open + 1, close - open - 1), std::int64_t(started), has_ended};
}

// Adds the devices that one process holds open; false when the budget is used up.
bool add_holder(const Host& host, Pid pid, std::size_t& budget, Holders& holders) {
  constexpr std::size_t kMostOfOne = 4096;
  const std::string directory = directory_of(pid) + "/fd";
  std::size_t visited = 0;
  visit_names(host.root.get(), directory, [&](std::string_view name) {
    if (visited == kMostOfOne || budget == 0) {
      holders.is_complete = false;
      return false;
    }
    ++visited;
    --budget;
    const std::string path = std::string(directory).append("/").append(name);
    struct statx status{};
    // Only device nodes are read, and the file system is never queried, because it may hang.
    if (!link_at(host.root.get(), path).starts_with("/dev/") ||
        ::statx(host.root.get(), path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &status) < 0 ||
        (!S_ISCHR(status.stx_mode) && !S_ISBLK(status.stx_mode))) {
      return true;
    }
    const device::Kind kind = S_ISBLK(status.stx_mode) ? device::Kind::block : device::Kind::character;
    std::vector<Pid>& pids = holders.pids[{kind, status.stx_rdev_major, status.stx_rdev_minor}];
    if (pids.empty() || pids.back() != pid) {
      pids.push_back(pid);
    }
    return true;
  });
  return budget > 0;
}

}  // namespace

std::vector<Pid> list_processes(const Host& host) {
  std::vector<Pid> pids;
  for (const std::string& name : list_names(host.root.get(), "proc")) {
    if (const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(name)) {
      pids.push_back({std::int32_t(*number)});
    }
  }
  std::ranges::sort(pids);
  return pids;
}

Result<ProcessHandle> hold_process(const Host& host, Pid pid) {
  Fd directory(::openat(host.root.get(), directory_of(pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return fail_errno(errno == ENOENT ? ESRCH : errno, "find process " + std::to_string(pid.value));
  }
  return ProcessHandle{pid, std::move(directory)};
}

Result<Process> read_process(const Host& host, Pid pid) {
  return parse_stat(pid, TRY(read_text(host.root.get(), directory_of(pid) + "/stat")));
}

Result<Process> read_process(const ProcessHandle& process) {
  return parse_stat(process.pid, TRY(read_text(process.directory.get(), "stat")));
}

Fd open_process(container::Pid pid) { return Fd(int(::syscall(SYS_pidfd_open, pid.value, 0))); }

bool is_running(const Fd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return process && ::poll(&ended, 1, 0) == 0;
}

Result<BootClock> BootClock::read(const Host& host) {
  const std::string text = TRY(read_text(host.root.get(), "proc/stat"));
  BootClock clock;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("btime ")) {
      clock.boot_time_ = std::int64_t(parse_number<std::uint64_t>(trim(line.substr(6))).value_or(0));
    }
  }
  return clock;
}

std::int64_t BootClock::wall_time(std::int64_t ticks) const {
  constexpr std::int64_t kTicksPerSecond = 100;  // Kernel: USER_HZ, the same on every machine that runs containers
  return boot_time_ + ticks / kTicksPerSecond;
}

bool is_root_of_host(const Host& host, const ProcessHandle& process) {
  const Result<Rights> rights = read_rights(host, process);
  return rights && rights->user.uid == 0 && rights->real_uid == 0 &&
         read_namespace(process, "user") == read_own_namespace(host, "user") &&
         read_namespace(process, "pid") == read_own_namespace(host, "pid") && has_our_root(host, process);
}

std::vector<std::string> read_command_line(const Host& host, const ProcessHandle& process) {
  std::vector<std::string> arguments;
  const Result<std::string> text = is_root_of_host(host, process)
                                       ? read_start(process.directory.get(), "cmdline", kLongestCommand)
                                       : Result<std::string>(std::string());
  if (!text || text->empty()) {
    return arguments;
  }
  const std::size_t end = text->ends_with('\0') ? text->size() - 1 : text->size();
  for (const std::string_view argument : split(std::string_view(*text).substr(0, end), '\0')) {
    arguments.emplace_back(argument);
  }
  return arguments;
}

std::vector<std::string> read_command_line(const Host& host, Pid pid) {
  const Result<ProcessHandle> process = hold_process(host, pid);
  return process ? read_command_line(host, *process) : std::vector<std::string>();
}

std::string read_cgroup_lines(const Host& host, Pid pid) {
  return read_text(host.root.get(), directory_of(pid) + "/cgroup").value_or("");
}

std::string read_cgroup_lines(const ProcessHandle& process) {
  return read_text(process.directory.get(), "cgroup").value_or("");
}

std::string read_link(const Host& host, const std::string& path) { return link_at(host.root.get(), below_root(path)); }

std::uint64_t read_namespace(const Host& host, Pid pid, const std::string& kind) {
  return namespace_at(host.root.get(), directory_of(pid) + "/ns/" + kind);
}

std::uint64_t read_namespace(const ProcessHandle& process, const std::string& kind) {
  return namespace_at(process.directory.get(), "ns/" + kind);
}

std::uint64_t read_own_namespace(const Host& host, const std::string& kind) {
  return namespace_at(host.root.get(), "proc/self/ns/" + kind);
}

std::vector<std::uint64_t> read_host_mount_namespaces(const Host& host) {
  std::vector<std::uint64_t> found = {read_own_namespace(host, "mnt"), read_namespace(host, Pid{1}, "mnt")};
  std::erase(found, 0U);
  return found;
}

bool has_our_root(const Host& host, const ProcessHandle& process) {
  struct statx ours{};
  struct statx theirs{};
  constexpr int kNeverWait = AT_STATX_DONT_SYNC;  // its root may be on a file system that hangs
  return ::statx(host.root.get(), "", AT_EMPTY_PATH | kNeverWait, STATX_INO, &ours) == 0 &&
         ::statx(process.directory.get(), "root", kNeverWait, STATX_INO, &theirs) == 0 &&
         ours.stx_dev_major == theirs.stx_dev_major && ours.stx_dev_minor == theirs.stx_dev_minor &&
         ours.stx_ino == theirs.stx_ino;
}

bool is_first_of_its_namespace(const Host& host, Pid pid) {
  const Result<std::string> status = read_text(host.root.get(), directory_of(pid) + "/status");
  if (!status) {
    return false;
  }
  const std::vector<std::uint32_t> numbers = numbers_in(value_of(*status, "NSpid"));
  return numbers.size() > 1 && numbers.back() == 1;
}

Result<Rights> read_rights(const Host& host, const ProcessHandle& process) {
  const std::string status = TRY(read_text(process.directory.get(), "status"));
  const std::vector<std::uint32_t> uids = numbers_in(value_of(status, "Uid"));
  const std::vector<std::uint32_t> gids = numbers_in(value_of(status, "Gid"));
  if (uids.size() != 4 || gids.size() != 4) {
    return fail(std::errc::invalid_argument, "read the user of process " + std::to_string(process.pid.value));
  }
  Rights rights;
  rights.real_uid = uids[0];
  rights.user.uid = uids[1];
  rights.user.gids = numbers_in(value_of(status, "Groups"));
  rights.user.gids.insert(rights.user.gids.begin(), gids[1]);
  rights.capabilities = parse_number<std::uint64_t>(value_of(status, "CapEff"), 16).value_or(0);
  // Capabilities in a user namespace of its own do not apply to device nodes that users of the host own.
  if (read_namespace(process, "user") != read_own_namespace(host, "user")) {
    rights.capabilities = 0;
  }
  rights.user.overrides_bits = (rights.capabilities >> kDacOverride & 1) != 0;
  return rights;
}

Holders read_holders(const Host& host) {
  Holders holders;
  std::size_t budget = std::size_t(1) << 18U;
  for (const Pid pid : list_processes(host)) {
    if (!add_holder(host, pid, budget, holders)) {
      holders.is_complete = false;
      break;
    }
  }
  return holders;
}

}  // namespace hf::kernel
