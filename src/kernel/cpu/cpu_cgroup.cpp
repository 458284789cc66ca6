#include "kernel/cpu/cpu_cgroup.h"

#include <algorithm>
#include <vector>

#include <sys/stat.h>

#include "core/base/text.h"
#include "core/container/cgroup/mount.h"
#include "core/container/cgroup_name.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::kernel {
namespace {

constexpr const char* kCpus = "cpuset.cpus";
constexpr const char* kMems = "cpuset.mems";
constexpr std::size_t kDeepest = 32;      // cgroups below a container's own
constexpr std::size_t kMostBelow = 1000;  // in all

Result<cpu::CpuSet> read_set(int directory, const char* name, const std::string& where) {
  const Result<std::string> text = read_text(directory, name);
  if (!text) {
    return fail(text.error().code, where + "/" + name + ": " + text.error().message);
  }
  return cpu::parse_cpu_set(trim(text->substr(0, text->find('\n'))));
}

Result<void> write_value(int directory, const std::string& name, std::string_view text, const std::string& where) {
  const Result<void> written = write_text(directory, name, text);
  return written ? written : fail(written.error().code, where + ": " + written.error().message);
}

struct QuotaFile {
  std::string name;
  const char* unlimited = "";
  bool is_v2 = false;
};

QuotaFile quota_file_in(int cgroup, const std::string& directory) {
  const std::string v2 = directory + "cpu.max";
  return exists(cgroup, v2) ? QuotaFile{v2, "max", true} : QuotaFile{directory + "cpu.cfs_quota_us", "-1", false};
}

// Kernel: a directory of a cgroup has two links and one for each cgroup below it (fs/kernfs/inode.c).
bool has_children(int directory) {
  struct stat status{};
  return ::fstat(directory, &status) == 0 && status.st_nlink > 2;
}

// Kernel: on v1 a cgroup's cpuset contains those of its children at any moment, so that they are changed one by one
// while the parent has the old CPUs and the new ones.
class TreeWriter {
 public:
  explicit TreeWriter(const std::string& where) : where_(where) {}

  Result<void> write(int directory, const cpu::CpuSet& old, const cpu::CpuSet& cpus, std::size_t depth) {
    if (!has_children(directory)) {
      return put(directory, cpus);
    }
    TRY(put(directory, old | cpus));
    for (const std::string& name : list_names(directory, ".")) {
      const Result<Fd> child = open_plain_directory(directory, name);
      const Result<cpu::CpuSet> now =
          child ? read_set(child->get(), kCpus, where_) : Result<cpu::CpuSet>(std::unexpected(child.error()));
      if (!now) {
        continue;  // a file, or it has ended
      }
      if (++visited_ > kMostBelow || depth > kDeepest) {
        return fail(std::errc::too_many_files_open, where_ + ": it has too many cgroups of its own");
      }
      TRY(write(child->get(), *now, part_of(*now, old, cpus), depth + 1));
    }
    return put(directory, cpus);
  }

 private:
  // A child that had all CPUs has all again.
  static cpu::CpuSet part_of(const cpu::CpuSet& now, const cpu::CpuSet& old, const cpu::CpuSet& cpus) {
    const cpu::CpuSet part = now & cpus;
    return now == old || part.empty() ? cpus : part;
  }

  [[nodiscard]] Result<void> put(int directory, const cpu::CpuSet& cpus) const {
    return write_value(directory, kCpus, to_string(cpus) + "\n", where_);
  }

  const std::string& where_;
  std::size_t visited_ = 0;
};

constexpr const char* kEffective = "cpuset.cpus.effective";

// On v2 a cgroup has only the controllers that its parent passes on. "" where the cgroup itself has a cpuset, "../"
// where its parent has one, and so on.
Result<std::string> way_to_cpuset(int directory, const std::string& where) {
  std::string way;
  if (!exists(directory, "cgroup.procs")) {
    return fail(std::errc::no_such_device, where + ": it has ended");
  }
  for (std::size_t level = 0; level < kDeepest; ++level, way += "../") {
    if (exists(directory, way + kEffective)) {
      return way;
    }
  }
  return fail(std::errc::not_supported, where + ": the cpuset controller is not available on cgroup v2");
}

Result<void> enable_cpuset(int directory, const std::string& where) {
  for (std::string way = TRY(way_to_cpuset(directory, where)); !way.empty(); way.resize(way.size() - 3)) {
    TRY(write_value(directory, way + "cgroup.subtree_control", "+cpuset", where));
  }
  return {};
}

std::optional<std::string> own_path(const container::Container& container, const char* controller) {
  const auto found = container.v1.find(controller);
  return found == container.v1.end() ? std::nullopt : own_cgroup_in(container, found->second);
}

// In the lines of /proc/PID/cgroup; "" where there is no such hierarchy.
std::string path_of(const std::string& lines, std::string_view controller) {
  for (const std::string_view line : split(lines, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() >= 3 && list_contains(fields[1], controller)) {
      return container::path_in_line(line);
    }
  }
  return "";
}

bool was_moved_up(const std::string& lines, const std::string& own_cpuset, const std::string& own_cpu) {
  const std::string cpuset = path_of(lines, "cpuset");
  return !cpuset.empty() && cpuset != own_cpuset && container::is_within(own_cpuset, cpuset) &&
         path_of(lines, "cpu") == own_cpu;
}

}  // namespace

CpuMounts read_cpu_mounts(const Host& host) {
  CpuMounts mounts;
  mounts.v2 = host.v2 ? host.v2->point : "";
  const std::string mountinfo = read_text(host.root.get(), "proc/self/mountinfo").value_or("");
  for (const container::Mount& mount : container::parse_mountinfo(mountinfo)) {
    if (mount.type != "cgroup" || mount.root != "/") {
      continue;
    }
    const std::string_view controllers = base_name(mount.point);
    if (mounts.cpuset.empty() && list_contains(controllers, "cpuset")) {
      mounts.cpuset = mount.point;
    }
    if (mounts.cpu.empty() && list_contains(controllers, "cpu")) {
      mounts.cpu = mount.point;
    }
  }
  return mounts;
}

Result<CpuCgroup> CpuCgroup::open(const Host& host, const CpuMounts& mounts, const container::Container& container) {
  const auto open_at = [&host](const std::string& path) {
    return open_plain_directory(host.root.get(), below_root(path));
  };
  const std::optional<std::string> cpu_path = own_path(container, "cpu");
  Fd cpu;
  if (!mounts.cpu.empty() && cpu_path) {
    Result<Fd> opened = open_at(mounts.cpu + *cpu_path);
    cpu = opened ? *std::move(opened) : Fd();
  }
  if (!mounts.cpuset.empty()) {
    const std::optional<std::string> path = own_path(container, "cpuset");
    if (!path) {
      return fail(std::errc::not_supported, "it has no cgroup of its own in the cpuset hierarchy");
    }
    Fd cpuset = TRY(open_at(mounts.cpuset + *path));
    CpuCgroup opened(std::move(cpuset), mounts.cpuset + *path, std::move(cpu), false);
    opened.host_ = &host;
    opened.paths_ = {.cpuset = *path, .cpu = cpu_path.value_or("")};
    return opened;
  }
  const std::optional<std::string> path = container.v2 ? own_cgroup_in(container, *container.v2) : std::nullopt;
  if (!path || mounts.v2.empty()) {
    return fail(std::errc::not_supported, "it has no cgroup of its own with a cpuset");
  }
  Fd directory = TRY(open_at(mounts.v2 + *path));
  if (mounts.cpu.empty()) {
    cpu = TRY(open_at(mounts.v2 + *path));
  }
  return CpuCgroup(std::move(directory), mounts.v2 + *path, std::move(cpu), true);
}

bool CpuCgroup::is_alive() const { return exists(cpuset_.get(), "cgroup.procs"); }

bool CpuCgroup::has_processes() const {
  if (is_v2_) {  // of the cgroups below too
    return read_text(cpuset_.get(), "cgroup.events").value_or("").find("populated 1") != std::string::npos;
  }
  return has_children(cpuset_.get()) || !trim(read_start(cpuset_.get(), "cgroup.procs", 16).value_or("")).empty();
}

std::uint64_t CpuCgroup::file() const {
  struct stat status{};
  return ::fstatat(cpuset_.get(), kCpus, &status, 0) == 0 ? status.st_ino : 0;
}

std::optional<std::uint64_t> CpuCgroup::quota_file() const {
  struct stat status{};
  const bool is_there = is_v2_ && cpu_ && ::fstatat(cpu_.get(), "cpu.max", &status, 0) == 0;
  return is_there ? std::optional(std::uint64_t(status.st_ino)) : std::nullopt;
}

// On v2 a parent may allow less than what is written: what is in force counts.
Result<cpu::CpuSet> CpuCgroup::read_cpus() const {
  if (!is_v2_) {
    return read_set(cpuset_.get(), kCpus, where_);
  }
  const std::string way = TRY(way_to_cpuset(cpuset_.get(), where_));
  return read_set(cpuset_.get(), (way + kEffective).c_str(), where_);
}

Result<cpu::CpuSet> CpuCgroup::read_cpus_above() const {
  if (!is_v2_) {
    return read_set(cpuset_.get(), (std::string("../") + kCpus).c_str(), where_);
  }
  const std::string way = TRY(way_to_cpuset(cpuset_.get(), where_));
  return read_set(cpuset_.get(), ((way.empty() ? "../" : way) + kEffective).c_str(), where_);
}

Result<void> CpuCgroup::write_cpus(const cpu::CpuSet& cpus) const {
  if (is_v2_) {
    TRY(enable_cpuset(cpuset_.get(), where_));
    TRY(write_value(cpuset_.get(), kCpus, to_string(cpus) + "\n", where_));
    const cpu::CpuSet effective = TRY(read_cpus());
    return effective == cpus ? Result<void>()
                             : fail(std::errc::operation_not_permitted,
                                    where_ + ": a cgroup above it allows only the CPUs " + to_string(effective));
  }
  TRY(TreeWriter(where_).write(cpuset_.get(), TRY(read_cpus()), cpus, 0));
  take_back_processes();
  return {};
}

// Kernel: on v1, when the last CPU of a cpuset goes offline, its processes are moved to the nearest cgroup above that
// has one, and stay there (kernel/cgroup/cpuset-v1.c). A process in a cpuset that the container has made stays in it,
// and a pid that another process has meanwhile is not moved.
void CpuCgroup::take_back_processes() const {
  const Result<std::string> here = read_start(cpuset_.get(), "cgroup.procs", 16);
  if (!cpu_ || !here || !trim(*here).empty()) {
    return;
  }
  const std::string processes = read_text(cpu_.get(), "cgroup.procs").value_or("");
  for (const std::string_view number : split(trim(processes), '\n')) {
    const std::uint32_t pid = parse_number<std::uint32_t>(number).value_or(0);
    const Result<ProcessHandle> process = hold_process(*host_, container::Pid{std::int32_t(pid)});
    if (process && was_moved_up(read_cgroup_lines(*process), paths_.cpuset, paths_.cpu)) {
      (void)write_text(cpuset_.get(), "cgroup.procs", number);  // one that has ended meanwhile
    }
  }
}

Result<std::string> CpuCgroup::read_memory_nodes() const {
  const std::string own = TRY(read_text(cpuset_.get(), kMems));
  if (is_v2_ && trim(own).empty()) {
    return std::string(trim(TRY(read_text(cpuset_.get(), "cpuset.mems.effective"))));
  }
  return std::string(trim(own));
}

Result<std::string> CpuCgroup::read_memory_nodes_above() const {
  return std::string(trim(TRY(read_text(cpuset_.get(), is_v2_ ? "../cpuset.mems.effective" : "../cpuset.mems"))));
}

Result<void> CpuCgroup::write_memory_nodes(const std::string& nodes) const {
  return write_value(cpuset_.get(), kMems, nodes + "\n", where_);
}

Result<void> CpuCgroup::remove_quota() const { return remove_quota_in(""); }
Result<void> CpuCgroup::remove_quota_of_pod() const { return remove_quota_in("../"); }

Result<void> CpuCgroup::remove_quota_in(const std::string& directory) const {
  if (!cpu_) {
    return {};
  }
  const QuotaFile file = quota_file_in(cpu_.get(), directory);
  const Result<std::string> now = read_text(cpu_.get(), file.name);
  if (!now || trim(*now).starts_with(file.unlimited)) {
    return {};
  }
  return write_value(cpu_.get(), file.name, std::string(file.unlimited) + "\n", where_);
}

Result<void> CpuCgroup::restore_quota(const CpuQuota& quota) const {
  if (!cpu_) {
    return {};
  }
  const QuotaFile file = quota_file_in(cpu_.get(), "");
  if (!trim(TRY(read_text(cpu_.get(), file.name))).starts_with(file.unlimited)) {
    return {};
  }
  const std::string period = file.is_v2 ? " " + std::to_string(quota.period) : "";
  return write_value(cpu_.get(), file.name, std::to_string(quota.amount) + period + "\n", where_);
}

Result<cpu::CpuSet> read_cpus_allowed_in(const Host& host, const CpuMounts& mounts, const std::string& cgroup) {
  const bool is_v2 = mounts.cpuset.empty();
  const std::string where = (is_v2 ? mounts.v2 : mounts.cpuset) + cgroup;
  const Fd directory = TRY(open_plain_directory(host.root.get(), below_root(where)));
  const std::string way = is_v2 ? TRY(way_to_cpuset(directory.get(), where)) : "";
  return read_set(directory.get(), is_v2 ? (way + kEffective).c_str() : kCpus, where);
}

Result<cpu::CpuSet> read_online_cpus(const Host& host) {
  return cpu::parse_cpu_set(trim(TRY(read_text(host.root.get(), "sys/devices/system/cpu/online"))));
}

Result<cpu::CpuSet> read_nodes_with_memory(const Host& host) {
  return cpu::parse_cpu_set(trim(TRY(read_text(host.root.get(), "sys/devices/system/node/has_memory"))));
}

}  // namespace hf::kernel
