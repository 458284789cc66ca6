#include "services/guard/newcomers.h"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <sys/prctl.h>

#include "core/base/text.h"
#include "core/container/cgroup_words.h"
#include "kernel/cgroup.h"
#include "kernel/clock.h"
#include "kernel/file.h"
#include "kernel/process.h"
#include "node/census.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kFirstPause = kMillisecond;
constexpr std::uint64_t kLongestPause = 64 * kMillisecond;  // beyond, the next survey finds it
constexpr std::size_t kMostWaiting = 256;
constexpr std::size_t kMostLetters = 1024;
constexpr std::size_t kMostMet = 4096;

}  // namespace

Newcomers::Newcomers(const kernel::Host& host, config::Config config, Report report)
    : host_(host), config_(std::move(config)), report_(std::move(report)), thread_([this] { work(); }) {}

Newcomers::~Newcomers() {
  mailbox_.post([this] { stops_ = true; });
  thread_.join();
}

bool Newcomers::ends_within(std::chrono::milliseconds limit) {
  mailbox_.post([this] { stops_ = true; });
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended_ && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return has_ended_;
}

// Most cgroups are of services: their paths tell.
void Newcomers::meet(const container::Event& event) {
  const std::optional<container::CgroupWords> words =
      event.text.empty() ? std::nullopt : container::read_cgroup_words(event.text);
  if (!words || letters_ >= kMostLetters) {
    return;
  }
  ++letters_;
  Waiting waiting{event.hierarchy, event.text, words->cgroup, event.member, event.writer.pid, 0, kFirstPause};
  mailbox_.post([this, waiting = std::move(waiting)] {
    --letters_;
    const bool is_waiting = std::ranges::any_of(waiting_, [&waiting](const Waiting& other) {
      return other.container == waiting.container && other.process == waiting.process;
    });
    if (waiting_.size() < kMostWaiting && !is_waiting && !known_.contains(waiting.container) &&
        !met_.contains(waiting.container)) {
      waiting_.push_back(waiting);
    }
  });
}

void Newcomers::adopt(SurveyPtr survey) {
  mailbox_.post([this, survey = std::move(survey)] {
    survey_ = survey;
    known_.clear();
    met_.clear();
    for (const WardPtr& ward : survey->wards) {
      known_.insert(ward->container.cgroup);
    }
    for (const report::WardLine& other : survey->others) {
      known_.insert(other.container->cgroup);
    }
  });
}

void Newcomers::set_config(const config::Config& config) {
  mailbox_.post([this, config] { config_ = config; });
}

void Newcomers::work() {
  ::prctl(PR_SET_NAME, "hf-newcomers");
  while (!stops_) {
    wait();
    for (const Mailbox::Letter& letter : mailbox_.take()) {
      letter();
    }
    meet_due(kernel::monotonic_now());
  }
  has_ended_ = true;
}

void Newcomers::wait() {
  int milliseconds = -1;
  const std::uint64_t now = kernel::monotonic_now();
  for (const Waiting& waiting : waiting_) {
    const int left = waiting.at <= now ? 0 : int((waiting.at - now) / kMillisecond) + 1;
    milliseconds = milliseconds < 0 ? left : std::min(milliseconds, left);
  }
  pollfd poll{mailbox_.descriptor(), POLLIN, 0};
  (void)::poll(&poll, 1, milliseconds);
}

void Newcomers::meet_due(std::uint64_t now) {
  for (Waiting& waiting : waiting_) {
    if (waiting.at > now) {
      continue;
    }
    const bool is_done = met_.contains(waiting.container) || meet_one(waiting);
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

// systemd moves processes for runtimes that ask it to: then the runtime is the parent of the first process.
container::Pid Newcomers::creator_of(const Waiting& waiting, container::Pid process) const {
  if (waiting.creator.value != 1) {
    return waiting.creator;
  }
  const Result<kernel::Process> first = kernel::read_process(host_, process);
  return first ? first->parent : container::Pid();
}

bool Newcomers::meet_one(const Waiting& waiting) {
  const std::optional<container::Pid> process = find_process(waiting);
  if (!process || !survey_) {
    return false;
  }
  std::set<std::string> containers = known_;
  containers.insert(met_.begin(), met_.end());
  const Result<std::optional<node::Resident>> resident = node::find_newcomer(host_, config_, *process, containers);
  if (!resident) {
    return false;
  }
  if (!*resident || containers.contains((*resident)->container.cgroup)) {
    return true;
  }
  // Without its bundle nobody knows what it is owed: the runtime may still be writing it.
  const container::Pid creator = waiting.creator == *process ? container::Pid() : creator_of(waiting, *process);
  const Result<WardPtr> ward = examine_newcomer({host_, **resident, creator}, config_, survey_->inventory);
  const bool is_told = ward && *ward;
  if (is_told) {
    report_(*ward);
  }
  if (is_told || (*resident)->spec) {
    if (met_.size() >= kMostMet) {
      met_.clear();
    }
    met_.insert(waiting.container);
    met_.insert((*resident)->container.cgroup);
    return true;
  }
  return false;
}

}  // namespace hf::guard
