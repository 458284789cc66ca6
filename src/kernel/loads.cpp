#include "kernel/loads.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

using container::Event;
using container::EventKind;

constexpr std::size_t kPages = 8;  // per CPU; a power of two

std::size_t page_size() { return std::size_t(::sysconf(_SC_PAGESIZE)); }
std::size_t ring_size() { return page_size() * (kPages + 1); }

Fd open_event(int cpu) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.bpf_event = 1;
  attributes.sample_id_all = 1;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1;
  return Fd(int(::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
}

// PERF_RECORD_BPF_EVENT, with what sample_type adds behind it.
struct BpfRecord {
  perf_event_header header;
  std::uint16_t type;  // PERF_BPF_EVENT_PROG_LOAD
  std::uint16_t flags;
  std::uint32_t id;
  std::array<std::uint8_t, 8> tag;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time;
};

}  // namespace

Result<Loads> Loads::open() {
  Loads loads;
  loads.all_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  const int cpus = ::get_nprocs_conf();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    Fd event = open_event(cpu);
    if (!event && errno == ENODEV) {
      continue;  // offline
    }
    if (!event) {
      return fail_errno(errno, "perf event for BPF programs");
    }
    void* pages = ::mmap(nullptr, ring_size(), PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
    if (pages == MAP_FAILED) {
      return fail_errno(errno, "map the ring of a perf event");
    }
    epoll_event interest{};
    interest.events = EPOLLIN;
    ::epoll_ctl(loads.all_.get(), EPOLL_CTL_ADD, event.get(), &interest);
    loads.rings_.push_back({std::move(event), pages});
  }
  return loads;
}

Loads::~Loads() {
  for (const Ring& ring : rings_) {
    ::munmap(ring.pages, ring_size());
  }
}

void Loads::take_from(Ring& ring, std::vector<Event>& events) {
  auto* page = static_cast<perf_event_mmap_page*>(ring.pages);
  const auto* data = static_cast<const char*>(ring.pages) + page_size();
  const std::size_t size = page_size() * kPages;
  const std::uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  std::uint64_t tail = page->data_tail;
  const auto copy = [&](void* to, std::uint64_t from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {  // a record may go around the end of the ring
      static_cast<char*>(to)[i] = data[(from + i) % size];
    }
  };
  while (tail < head) {
    perf_event_header header{};
    copy(&header, tail, sizeof(header));
    Event event;
    if (header.type == PERF_RECORD_BPF_EVENT && header.size >= sizeof(BpfRecord)) {
      BpfRecord record{};
      copy(&record, tail, sizeof(record));
      event.kind = EventKind::load;
      event.program = container::ProgramId{record.id};
      event.writer.pid = container::Pid{std::int32_t(record.pid)};
      event.at = record.time;
      if (record.type == PERF_BPF_EVENT_PROG_LOAD && record.pid != std::uint32_t(::getpid())) {
        events.push_back(std::move(event));
      }
    } else if (header.type == PERF_RECORD_LOST) {
      event.kind = EventKind::lost;
      events.push_back(std::move(event));
    }
    tail += header.size == 0 ? head - tail : header.size;
  }
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

void Loads::take(std::vector<Event>& events) {
  for (Ring& ring : rings_) {
    take_from(ring, events);
  }
}

}  // namespace hf::kernel
