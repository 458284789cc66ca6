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
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/files/clock.h"
#include "kernel/files/fd.h"
#include "kernel/files/file.h"
#include "kernel/watch/trace_event.h"

extern "C" {
extern const unsigned char hf_trace_object[];
extern const unsigned char hf_trace_object_end[];
}

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

// Through a mount of tracefs that is ours where there can be one, otherwise through its default mount point.
Result<bpf_link*> attach(const bpf_program* program, const Result<Fd>& tracefs) {
  if (bpf_program__type(program) == BPF_PROG_TYPE_TRACEPOINT && tracefs) {
    if (const Result<bpf_link*> link = attach_tracepoint(tracefs->get(), program)) {
      return link;
    }
  }
  bpf_link* link = bpf_program__attach(program);
  return link != nullptr ? Result<bpf_link*>(link) : fail_errno(errno, "attach the tracer");
}

Result<trace_settings> own_settings() {
  struct stat own_namespace{};
  if (::stat("/proc/self/ns/pid", &own_namespace) < 0) {
    return fail_errno(errno, "find our pid namespace");
  }
  return trace_settings{own_namespace.st_dev, own_namespace.st_ino, std::uint64_t(::getpid())};
}

}  // namespace

struct Trace::Rings {
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  ring_buffer* buffer = nullptr;
  const trace_counters* counters = nullptr;  // in memory that is shared with the programs
  std::vector<Event> events;                 // the ring buffer callbacks append to it
  std::uint64_t lost = 0;
  std::uint64_t missed = 0;
  std::uint64_t counted_missed_at = 0;

  Rings() = default;
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings() {
    ring_buffer__free(buffer);
    if (counters != nullptr) {
      ::munmap(const_cast<trace_counters*>(counters), sizeof(*counters));
    }
    std::ranges::for_each(links, bpf_link__destroy);
    bpf_object__close(object);
  }

  [[nodiscard]] int map(const char* name) const { return bpf_object__find_map_fd_by_name(object, name); }

  Result<void> load() {
    bpf_object_open_opts options{};
    options.sz = sizeof(options);
    options.object_name = "holdfast";
    object = bpf_object__open_mem(hf_trace_object, std::size_t(hf_trace_object_end - hf_trace_object), &options);
    if (object == nullptr) {
      return fail_errno(errno, "open the tracer");
    }
    const trace_settings settings = TRY(own_settings());
    bpf_map* told = bpf_object__find_map_by_name(object, ".rodata.settings");
    if (const int error = bpf_map__set_initial_value(told, &settings, sizeof(settings)); error < 0) {
      return fail_errno(-error, "set up the tracer");
    }
    if (const int error = bpf_object__load(object); error < 0) {
      return fail_errno(-error, "load the tracer");
    }
    return {};
  }

  Result<void> attach_all() {
    const Result<Fd> tracefs = mount_tracefs();
    for (bpf_program* program = nullptr; (program = bpf_object__next_program(object, program)) != nullptr;) {
      links.push_back(TRY(attach(program, tracefs)));
    }
    return {};
  }

  Result<void> read_maps() {
    void* shared = ::mmap(nullptr, sizeof(*counters), PROT_READ, MAP_SHARED, map(".data.counters"), 0);
    if (shared == MAP_FAILED) {
      return fail_errno(errno, "read the tracer's counters");
    }
    counters = static_cast<const trace_counters*>(shared);
    buffer = ring_buffer__new(map("rules"), collect_event, &events, nullptr);
    if (buffer == nullptr || ring_buffer__add(buffer, map("cgroups"), collect_event, &events) < 0) {
      return fail_errno(errno, "read the tracer");
    }
    return {};
  }
};

Trace::Trace(std::unique_ptr<Rings> rings) : rings_(std::move(rings)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace::~Trace() = default;

Result<Trace> Trace::open() {
  libbpf_set_print(nullptr);
  auto rings = std::make_unique<Rings>();
  TRY(rings->load());
  TRY(rings->attach_all());
  TRY(rings->read_maps());
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
    rings_->missed = count_missed(rings_->object);
  }
  const trace_counters* counters = rings_->counters;
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
