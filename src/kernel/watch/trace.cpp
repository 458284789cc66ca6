#include "kernel/watch/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/files/clock.h"
#include "kernel/files/fd.h"
#include "kernel/files/file.h"
#include "kernel/watch/trace_event.h"
#include "trace.skel.h"

namespace hf::kernel {
namespace {

using container::Event;
using container::EventKind;

EventKind kind_of(unsigned kind) {
  switch (kind) {
    case TRACE_DETACH: return EventKind::detach;
    case TRACE_CGROUP_CREATED: return EventKind::cgroup_made;
    case TRACE_CGROUP_JOINED: return EventKind::cgroup_joined;
    case TRACE_CGROUP_REMOVED: return EventKind::cgroup_gone;
    default: return EventKind::attach;
  }
}

std::string text_of(const char* characters, std::size_t most) { return {characters, ::strnlen(characters, most)}; }

std::optional<container::ProgramId> program_of(unsigned id) {
  return id == 0 ? std::nullopt : std::optional(container::ProgramId{id});
}

Event event_of(const trace_event& raw) {
  Event event;
  event.kind = kind_of(raw.kind);
  event.hierarchy = raw.hierarchy == 0 ? container::Hierarchy::v2 : container::Hierarchy::v1;
  event.cgroup = raw.cgroup == 0 ? std::nullopt : std::optional(container::CgroupId{raw.cgroup});
  event.at = raw.at;
  event.writer.pid = container::Pid{std::int32_t(raw.pid)};
  event.writer.name = text_of(raw.name, TRACE_NAME);
  for (const trace_parent& parent : raw.parents) {
    if (parent.pid == 0) {
      break;
    }
    event.writer.parents.push_back({container::Pid{std::int32_t(parent.pid)}, text_of(parent.name, TRACE_NAME)});
  }
  event.writer.command.assign(raw.command, std::min<std::size_t>(raw.command_size, TRACE_COMMAND));
  while (event.writer.command.ends_with('\0')) {
    event.writer.command.pop_back();
  }
  std::ranges::replace(event.writer.command, '\0', ' ');
  if (raw.kind == TRACE_CGROUP_CREATED || raw.kind == TRACE_CGROUP_JOINED || raw.kind == TRACE_CGROUP_REMOVED) {
    event.text = std::exchange(event.writer.command, {});
  }
  event.member = container::Pid{std::int32_t(raw.member)};
  event.program = program_of(raw.program);
  event.replaced = program_of(raw.replaced);
  event.flags = raw.flags;
  return event;
}

// Users can cause events as fast as they are read. libbpf stops reading when this fails, and the rest is read next
// time.
int collect_event(void* context, void* data, std::size_t size) {
  constexpr std::size_t kMostAtOnce = 1024;
  auto& events = *static_cast<std::vector<Event>*>(context);
  if (size >= sizeof(trace_event)) {
    events.push_back(event_of(*static_cast<const trace_event*>(data)));
  }
  return events.size() < kMostAtOnce ? 0 : -E2BIG;
}

// Kernel: a program that is triggered on a CPU where it is already running is skipped, and only its own counter shows
// that (5.12).
std::uint64_t count_missed(bpf_object* object) {
  std::uint64_t missed = 0;
  for (bpf_program* program = nullptr; (program = bpf_object__next_program(object, program)) != nullptr;) {
    bpf_prog_info info{};
    std::uint32_t size = sizeof(info);
    if (bpf_program__fd(program) >= 0 && ::bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0) {
      missed += info.recursion_misses;
    }
  }
  return missed;
}

// Mounts tracefs privately, because it is not mounted in a container, nor on some hosts.
Result<Fd> mount_tracefs() {
  const Fd context(::fsopen("tracefs", FSOPEN_CLOEXEC));
  if (!context || ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) {
    return fail_errno(errno, "open tracefs");
  }
  Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  if (!mount) {
    return fail_errno(errno, "mount tracefs");
  }
  return mount;
}

Result<bpf_link*> attach_tracepoint(int tracefs, const bpf_program* program) {
  std::string path = bpf_program__section_name(program);
  path.replace(0, path.find('/'), "events");
  const std::string number = TRY(read_text(tracefs, path + "/id"));
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = std::strtoull(number.c_str(), nullptr, 10);
  // Kernel: the program runs on every CPU, whichever CPU the event is for.
  const int event = int(::syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
  bpf_link* link = event < 0 ? nullptr : bpf_program__attach_perf_event(program, event);
  if (link == nullptr) {
    const Fd unused(event);  // otherwise the link owns it
    return fail_errno(errno, "attach to " + path);
  }
  return link;
}

// Where this fails, libbpf attaches them later through the default mount point of tracefs.
void attach_tracepoints(trace_skeleton& skeleton) {
  const Result<Fd> tracefs = mount_tracefs();
  if (tracefs) {
    skeleton.links.on_enter_bpf = attach_tracepoint(tracefs->get(), skeleton.progs.on_enter_bpf).value_or(nullptr);
    skeleton.links.on_exit_bpf = attach_tracepoint(tracefs->get(), skeleton.progs.on_exit_bpf).value_or(nullptr);
  }
}

}  // namespace

struct Trace::Rings {
  trace_skeleton* skeleton = nullptr;
  ring_buffer* buffer = nullptr;
  std::vector<Event> events;  // the ring buffer callbacks append to it
  std::uint64_t lost = 0;
  std::uint64_t missed = 0;
  std::uint64_t counted_missed_at = 0;

  Rings() = default;
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings() {
    ring_buffer__free(buffer);
    trace_skeleton::destroy(skeleton);
  }
};

Trace::Trace(std::unique_ptr<Rings> rings) : rings_(std::move(rings)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace::~Trace() = default;

Result<Trace> Trace::open() {
  libbpf_set_print(nullptr);
  auto rings = std::make_unique<Rings>();
  rings->skeleton = trace_skeleton::open();
  if (rings->skeleton == nullptr) {
    return fail_errno(errno, "open the tracer");
  }
  struct stat own_namespace{};
  if (::stat("/proc/self/ns/pid", &own_namespace) < 0) {
    return fail_errno(errno, "find our pid namespace");
  }
  rings->skeleton->rodata->own_pid = std::uint32_t(::getpid());
  rings->skeleton->rodata->own_namespace_device = own_namespace.st_dev;
  rings->skeleton->rodata->own_namespace_inode = own_namespace.st_ino;
  if (const int error = trace_skeleton::load(rings->skeleton); error < 0) {
    return fail_errno(-error, "load the tracer");
  }
  attach_tracepoints(*rings->skeleton);
  if (const int error = trace_skeleton::attach(rings->skeleton); error < 0) {
    return fail_errno(-error, "attach the tracer");
  }
  rings->buffer = ring_buffer__new(bpf_map__fd(rings->skeleton->maps.rules), collect_event, &rings->events, nullptr);
  if (rings->buffer == nullptr ||
      ring_buffer__add(rings->buffer, bpf_map__fd(rings->skeleton->maps.cgroups), collect_event, &rings->events) < 0) {
    return fail_errno(errno, "read the tracer");
  }
  return Trace(std::move(rings));
}

int Trace::descriptor() const { return ring_buffer__epoll_fd(rings_->buffer); }

void Trace::take(std::vector<Event>& events) {
  (void)ring_buffer__consume(rings_->buffer);
  for (Event& event : rings_->events) {
    events.push_back(std::move(event));
  }
  rings_->events.clear();
  constexpr std::uint64_t kPause = 100'000'000;  // 100 ms: counting costs a system call for each program
  if (const std::uint64_t now = monotonic_now(); now - rings_->counted_missed_at > kPause) {
    rings_->counted_missed_at = now;
    rings_->missed = count_missed(rings_->skeleton->obj);
  }
  const auto* counters = rings_->skeleton->bss;
  const std::uint64_t lost = __atomic_load_n(&counters->lost_rules, __ATOMIC_RELAXED) +
                             __atomic_load_n(&counters->lost_cgroups, __ATOMIC_RELAXED) + rings_->missed;
  if (lost != rings_->lost) {
    rings_->lost = lost;
    Event event;
    event.kind = EventKind::lost;
    event.at = monotonic_now();
    events.push_back(std::move(event));
  }
}

}  // namespace hf::kernel
