#include "services/guard/newcomers.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/container/cgroup_name.h"
#include "host/census.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kFirstPause = kMillisecond;
constexpr std::uint64_t kLongestPause = 64 * kMillisecond;  // after a longer pause the next survey finds it
constexpr std::size_t kMostWaiting = 256;
constexpr std::size_t kMostQueued = 1024;
constexpr std::size_t kMostExamined = 4096;

}  // namespace

Newcomers::Newcomers(const kernel::Host& host, config::Config config, Reports reports)
    : host_(host), config_(std::move(config)), reports_(std::move(reports)), thread_(loop_, "hf-newcomers", [this] {
        loop_.run_until(next_due());
        examine_due(kernel::monotonic_now());
      }) {}

// Most new cgroups belong to services, as their paths show: these are skipped.
void Newcomers::examine_soon(const container::Event& event) {
  const std::optional<container::ParsedCgroupName> name =
      event.text.empty() ? std::nullopt : container::parse_cgroup_name(event.text);
  if (!name || queued_events_ >= kMostQueued) {
    return;
  }
  ++queued_events_;
  Waiting waiting{event.hierarchy, event.text, name->cgroup, event.member, event.writer.pid, 0, kFirstPause};
  loop_.post([this, waiting = std::move(waiting)] {
    --queued_events_;
    const bool is_waiting = std::ranges::any_of(waiting_, [&waiting](const Waiting& other) {
      return other.container == waiting.container && other.process == waiting.process;
    });
    if (waiting_.size() < kMostWaiting && !is_waiting && !known_.contains(waiting.container) &&
        !examined_.contains(waiting.container)) {
      waiting_.push_back(waiting);
    }
  });
}

void Newcomers::adopt(SurveyPtr survey) {
  loop_.post([this, survey = std::move(survey)] {
    known_.clear();
    examined_.clear();
    survey_ = survey;
    for (const GuardedContainerPtr& guarded : survey->guarded_containers) {
      known_.insert(guarded->container.cgroup);
    }
    for (const report::ContainerStatus& other : survey->others) {
      known_.insert(other.container->cgroup);
    }
  });
}

void Newcomers::set_config(const config::Config& config) {
  loop_.post([this, config] { config_ = config; });
}

std::uint64_t Newcomers::next_due() const {
  std::uint64_t next = kernel::EventLoop::kNever;
  for (const Waiting& waiting : waiting_) {
    next = std::min(next, waiting.at);
  }
  return next;
}

void Newcomers::examine_due(std::uint64_t now) {
  for (Waiting& waiting : waiting_) {
    if (waiting.at > now) {
      continue;
    }
    const bool is_done = examined_.contains(waiting.container) || examine_one(waiting);
    waiting.at = now + waiting.pause;
    waiting.pause = is_done ? kLongestPause + 1 : waiting.pause * 2;
  }
  std::erase_if(waiting_, [](const Waiting& waiting) { return waiting.pause > kLongestPause; });
}

std::optional<container::Pid> Newcomers::find_process(const Waiting& waiting) const {
  if (waiting.process.value != 0) {
    return waiting.process;
  }
  const Result<container::CgroupPath> path = container::parse_cgroup_path(waiting.path);
  const Result<kernel::Cgroup> cgroup = path ? kernel::open_cgroup(host_, waiting.hierarchy, *path)
                                             : Result<kernel::Cgroup>(std::unexpected(path.error()));
  const Result<std::string> processes =
      cgroup ? kernel::read_start(cgroup->directory.get(), "cgroup.procs", 64) : Result<std::string>("");
  const std::optional<std::uint32_t> first =
      parse_number<std::uint32_t>(processes ? std::string_view(*processes).substr(0, processes->find('\n')) : "");
  return first ? std::optional(container::Pid{std::int32_t(*first)}) : std::nullopt;
}

// Some runtimes let systemd move the process: then the runtime is the parent of the first process.
container::Pid Newcomers::creator_of(const Waiting& waiting, container::Pid process) const {
  if (waiting.creator.value != 1) {
    return waiting.creator;
  }
  const Result<kernel::Process> first = kernel::read_process(host_, process);
  return first ? first->parent : container::Pid();
}

bool Newcomers::examine_one(const Waiting& waiting) {
  const std::optional<container::Pid> process = find_process(waiting);
  if (!process || !survey_) {
    return false;
  }
  std::set<std::string> containers(known_.begin(), known_.end());
  containers.insert(examined_.begin(), examined_.end());
  const Result<std::optional<host::DiscoveredContainer>> discovered =
      host::find_newcomer(host_, config_, *process, containers);
  if (!discovered) {
    return false;
  }
  if (!*discovered || containers.contains((*discovered)->container.cgroup)) {
    return true;
  }
  // Without its bundle it is not known what it is owed: the runtime may still be writing it.
  const container::Pid creator = waiting.creator == *process ? container::Pid() : creator_of(waiting, *process);
  const Result<GuardedContainerPtr> guarded =
      examine_newcomer({host_, **discovered, creator}, config_, survey_->inventory);
  const bool is_reported = guarded && *guarded;
  if (is_reported) {
    reports_.guarded(*guarded);
  }
  if (is_reported || (*discovered)->spec) {
    if (reports_.any) {
      reports_.any(**discovered);
    }
    if (examined_.size() >= kMostExamined) {
      examined_.clear();
    }
    examined_.insert(waiting.container);
    examined_.insert((*discovered)->container.cgroup);
    return true;
  }
  return false;
}

}  // namespace hf::guard
