#include "kernel/watch/watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::kernel {
namespace {

using container::Event;
using container::EventKind;
using container::Hierarchy;
using container::Tier;

Event event_now(EventKind kind) {
  Event event;
  event.kind = kind;
  event.at = monotonic_now();
  return event;
}

// A runtime ends soon after its write, so its name is read at once and the rest after the container was healed.
void name_writer(const Host& host, container::Writer& writer) {
  if (const Result<Process> process = read_process(host, writer.pid)) {
    writer.name = process->name;
    writer.parents = {{process->parent, ""}};
  }
}

std::uint64_t inode_of(const Cgroup& cgroup, const char* file) {
  struct stat status{};
  return ::fstatat(cgroup.directory.get(), file, &status, 0) < 0 ? 0 : status.st_ino;
}

// The better a tier, the smaller its number.
bool may_use(Tier tier, std::optional<Tier> at_most) { return !at_most || tier >= *at_most; }

// The tag of every source but the first processes of containers, which have tags of their own.
constexpr std::uint64_t kSource = 0;

}  // namespace

Watch Watch::open(const Host& host, Bpf& bpf, std::optional<Tier> at_most) {
  Watch watch(bpf);
  watch.all_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  watch.host_ = &host;
  watch.tiers_.has_v1 = host.v1.has_value();
  watch.tiers_.has_v2 = host.v2.has_value();
  watch.open_v2(at_most);
  if (host.v1) {
    watch.open_v1(host, at_most);
  }
  watch.open_drivers();
  if (Result<DirectoryEvents> directories = DirectoryEvents::open()) {
    watch.wait_for(directories->descriptor(), kSource);
    watch.directories_.emplace(*std::move(directories));
  }
  return watch;
}

// The tracer is opened without v2 as well, because it reports the creation and removal of cgroups.
void Watch::open_v2(std::optional<Tier> at_most) {
  if (!may_use(Tier::tracepoints, at_most)) {
    return;
  }
  Result<Trace> trace = Trace::open();
  if (!trace) {
    tiers_.why.push_back(to_string(Tier::tracepoints) + ": " + trace.error().message);
    return;
  }
  trace_.emplace(*std::move(trace));
  tiers_.v2 = Tier::tracepoints;
  wait_for(trace_->descriptor(), kSource);
}

void Watch::open_v1(const Host& host, std::optional<Tier> at_most) {
  if (!may_use(Tier::files, at_most)) {
    return;
  }
  Result<CgroupWrites> writes = host.v1 ? CgroupWrites::open(host, host.v1->point)
                                        : fail(std::errc::not_supported, "the v1 devices hierarchy is not mounted");
  if (writes) {
    v1_writes_.emplace(*std::move(writes));
    tiers_.v1 = Tier::files;
    wait_for(v1_writes_->descriptor(), kSource);
  } else {
    tiers_.why.push_back(to_string(Tier::files) + ": " + writes.error().message);
  }
}

void Watch::open_drivers() {
  Result<DriverEvents> drivers = DriverEvents::open();
  if (!drivers) {
    tiers_.why.push_back(drivers.error().message);
    return;
  }
  wait_for(drivers->descriptor(), kSource);
  drivers_.emplace(*std::move(drivers));
}

void Watch::wait_for(int descriptor, std::uint64_t tag) {
  epoll_event interest{};
  interest.events = EPOLLIN;
  interest.data.u64 = tag;
  ::epoll_ctl(all_.get(), EPOLL_CTL_ADD, descriptor, &interest);
}

void Watch::add_v1_files(const Cgroup& cgroup, const CgroupsKey& user) {
  for (const auto& [name, allows] : {std::pair("devices.allow", true), std::pair("devices.deny", false)}) {
    V1File& file = v1_files_[inode_of(cgroup, name)];
    file.cgroup = cgroup.id;
    file.path = cgroup.path.text;
    file.allows = allows;
    file.users.insert(user);
  }
}

// Kernel: what a v1 cgroup is denied, all cgroups below it lose as well, and a later allow does not restore it for
// them.
std::optional<Event> Watch::add(const CgroupsPtr& cgroups, const ProcessHandle& first_process) {
  sweep_.add(cgroups);
  std::optional<Event> seen;
  if (cgroups->v1 && !cgroups->v1->path.is_root()) {
    seen = remembered_write(*cgroups->v1);
    add_v1_files(*cgroups->v1, key_of(*cgroups));
    for (Result<Cgroup> above = open_parent(*cgroups->v1); above; above = open_parent(*above)) {
      add_v1_files(*above, key_of(*cgroups));
      if (above->path.is_root()) {
        break;
      }
    }
  }
  Fd process = open_process(first_process.pid);
  const Result<Process> state = read_process(first_process);
  if (!state || state->has_ended) {
    process = Fd(::eventfd(1, EFD_CLOEXEC));  // it has ended already, so this is readable at once
  }
  if (process) {
    wait_for(process.get(), std::uint64_t(process.get()));
    const Cgroup& cgroup = own_cgroup_of(*cgroups);
    first_processes_.insert_or_assign(key_of(*cgroups), FirstProcess{std::move(process), cgroup.id, cgroup.hierarchy});
  }
  return seen;
}

void Watch::remove(const CgroupsOfProcess& cgroups) {
  sweep_.remove(cgroups);
  const CgroupsKey key = key_of(cgroups);
  for (auto& [inode, file] : v1_files_) {
    file.users.erase(key);
  }
  std::erase_if(v1_files_, [](const auto& entry) { return entry.second.users.empty(); });
  first_processes_.erase(key);
}

void Watch::add_directory(const Host& host, const std::string& path) {
  if (directories_) {
    directories_->add(host, path);
  }
}

void Watch::take(std::vector<Event>& events) {
  if (trace_) {
    trace_->take(events);
  }
  if (v1_writes_) {
    take_v1(events);
  }
  if (drivers_ && drivers_->take()) {
    events.push_back(event_now(EventKind::drivers));
  }
  if (directories_ && directories_->take()) {
    events.push_back(event_now(EventKind::evidence));
  }
  take_ended(events);
}

void Watch::sweep(std::vector<Event>& events) {
  sweep_.collect_changes(events);
  if (trace_) {
    return;
  }
  std::string counts = read_text(host_->root.get(), "proc/cgroups").value_or("");
  if (counts != counts_) {
    counts_ = std::move(counts);
    events.push_back(event_now(EventKind::cgroup_made));
  }
}

void Watch::take_v1(std::vector<Event>& events) {
  std::vector<CgroupWrite> writes;
  v1_writes_->take(writes);
  for (const CgroupWrite& write : writes) {
    if (write.lost) {
      events.push_back(event_now(EventKind::lost));
      continue;
    }
    const auto file = v1_files_.find(write.file);
    if (file == v1_files_.end()) {
      remember(write);
      continue;
    }
    Event event = event_of(write, file->second);
    name_writer(*host_, event.writer);
    events.push_back(std::move(event));
  }
}

Event Watch::event_of(const CgroupWrite& write, const V1File& file) {
  Event event = event_now(EventKind::write);
  event.hierarchy = Hierarchy::v1;
  event.cgroup = file.cgroup;
  event.at = write.at;
  event.writer.pid = write.pid;
  event.text = file.allows ? "devices.allow" : "devices.deny";
  return event;
}

// The command line is read only for root processes of the host: reading the memory of another process may block, and
// this is the thread that heals. It is not read for a process inside the cgroup that it writes to either.
void Watch::describe_writer(Event& event) const {
  const auto file = std::ranges::find_if(v1_files_, [&event](const auto& entry) {
    return event.kind == EventKind::write && event.cgroup == entry.second.cgroup;
  });
  const Result<ProcessHandle> handle =
      file == v1_files_.end() ? fail(std::errc::no_such_process, "") : hold_process(*host_, event.writer.pid);
  if (!handle) {
    return;
  }
  const std::string own = container::parse_membership(read_cgroup_lines(*handle)).v1.value_or("/");
  if (container::is_within(own, file->second.path)) {
    event.writer.inside = base_name(file->second.path);
  } else {
    event.writer.command = join(read_command_line(*host_, *handle), " ");
  }
}

// The write may belong to a container that is added soon. Its writer may have ended by then, so its name is read now.
void Watch::remember(const CgroupWrite& write) {
  constexpr std::size_t kMost = 64;
  constexpr std::uint64_t kOldest = 5'000'000'000;  // 5 s: the pid may be reused after that
  std::erase_if(unknown_writes_, [&write](const UnknownWrite& known) { return known.write.at + kOldest < write.at; });
  const auto same = std::ranges::find_if(unknown_writes_, [&write](const UnknownWrite& known) {
    return known.write.file == write.file && known.write.pid == write.pid;
  });
  if (same != unknown_writes_.end()) {
    same->write.at = write.at;
    return;
  }
  UnknownWrite unknown{write, {}};
  unknown.writer.pid = write.pid;
  const auto by_same_writer =
      std::ranges::find(unknown_writes_, write.pid, [](const UnknownWrite& known) { return known.writer.pid; });
  if (by_same_writer != unknown_writes_.end()) {
    unknown.writer = by_same_writer->writer;
  } else {
    name_writer(*host_, unknown.writer);
  }
  if (unknown_writes_.size() >= kMost) {
    unknown_writes_.pop_front();
  }
  unknown_writes_.push_back(std::move(unknown));
}

std::optional<Event> Watch::remembered_write(const Cgroup& cgroup) {
  std::optional<Event> latest;
  for (const auto& [name, allows] : {std::pair("devices.allow", true), std::pair("devices.deny", false)}) {
    const std::uint64_t inode = inode_of(cgroup, name);
    for (const UnknownWrite& unknown : unknown_writes_) {
      if (unknown.write.file == inode && (!latest || unknown.write.at > latest->at)) {
        latest = event_of(unknown.write, {cgroup.id, cgroup.path.text, allows, {}});
        latest->writer = unknown.writer;
      }
    }
    std::erase_if(unknown_writes_, [inode](const UnknownWrite& unknown) { return unknown.write.file == inode; });
  }
  return latest;
}

void Watch::take_ended(std::vector<Event>& events) {
  std::array<epoll_event, 64> ready{};
  const int count = ::epoll_wait(all_.get(), ready.data(), int(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto first = std::ranges::find_if(first_processes_, [&](const auto& entry) {
      return std::uint64_t(entry.second.process.get()) == ready[std::size_t(i)].data.u64;
    });
    if (first == first_processes_.end()) {
      continue;
    }
    Event event = event_now(EventKind::process_gone);
    event.cgroup = first->second.cgroup;
    event.hierarchy = first->second.hierarchy;
    events.push_back(std::move(event));
    first_processes_.erase(first);  // the pidfd of an ended process stays readable
  }
}

}  // namespace hf::kernel
