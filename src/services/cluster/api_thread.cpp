#include "services/cluster/api_thread.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "core/base/text.h"
#include "core/notice/pod_event.h"
#include "kernel/files/clock.h"
#include "kernel/net/event_loop.h"
#include "kernel/process/thread.h"
#include "services/cluster/guard_reader.h"
#include "services/cluster/reporter.h"
#include "services/cluster/sender.h"

namespace hf::cluster {
namespace {

using apiserver::Client;
using kernel::Clock;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPoll = 10 * kSecond;         // between reads of the guard's snapshot
constexpr std::uint64_t kAccessPause = 10 * kSecond;  // between two readings of the access, while it does not work
// The API server waits 10 s for an admission webhook, if its configuration does not say otherwise, and may then go on
// without it. Other requests wait for that time.
constexpr std::chrono::seconds kAnswerLimit{15};
constexpr std::chrono::seconds kGuardLimit{2};
constexpr std::size_t kMostReports = 1024;

ReporterSettings settings_of(const ApiSettings& settings) {
  ReporterSettings reporter;
  reporter.node = settings.node;
  reporter.started = kernel::monotonic_now();
  reporter.writes_events = settings.options.writes_events;
  reporter.writes_condition = settings.options.writes_condition;
  reporter.writes_taint = settings.options.writes_taint;
  reporter.limits.spread = settings.options.spread * kSecond;
  reporter.limits.warning_spread = std::min(reporter.limits.warning_spread, reporter.limits.spread);
  return reporter;
}

}  // namespace

class ApiThread::Loop {
 public:
  Loop(const kernel::Host& host, ApiSettings settings)
      : settings_(std::move(settings)),
        guard_(host, settings_.guard_socket),
        reporter_(settings_of(settings_)),
        sender_(settings_.log),
        random_(std::random_device()()),
        thread_([this] { run(); }) {}

  ~Loop() {
    stops_ = true;
    if (const std::shared_ptr<Client> client = current_client()) {
      client->cancel();
    }
    loop_.post([] {});  // wakes it
    thread_.join();
  }

  void request(apiserver::Request request, Done done) {
    std::optional<Asked> oldest;
    bool is_first = false;
    {
      const std::scoped_lock lock(mutex_);
      is_first = requests_.empty();
      requests_.push_back({std::move(request), std::move(done)});
      if (requests_.size() > Sender::kMostWaiting) {
        oldest = std::move(requests_.front());
        requests_.pop_front();
        ++dropped_;
      }
    }
    if (is_first) {
      loop_.post([this] { take_requests(); });
    }
    if (oldest) {
      oldest->done(fail(std::errc::no_buffer_space, "the API server is too slow: the oldest request was dropped"));
    }
  }

  void report(const report::BlameRecord& record) {
    const std::optional<notice::PodEvent> event = notice::event_of(record);
    if (!event) {
      return;
    }
    bool is_first = false;
    {
      const std::scoped_lock lock(mutex_);
      is_first = reports_.empty();
      reports_.push_back(*event);
      if (reports_.size() > kMostReports) {
        reports_.pop_front();
        ++dropped_;
      }
    }
    if (is_first) {
      loop_.post([this] { take_reports(); });
    }
  }

  [[nodiscard]] const std::string& node() const { return settings_.node; }

 private:
  struct Asked {
    apiserver::Request request;
    Done done;
  };

  void run() {
    kernel::name_thread("hf-api");
    kernel::block_all_signals();
    while (!stops_) {
      loop_.run_until(next_due());
      if (stops_) {
        break;
      }
      read_guard();
      send_next();
      note_dropped();
    }
    take_requests();
    sender_.drop_all();
  }

  [[nodiscard]] std::uint64_t next_due() const {
    return std::min({poll_due_, sender_.next_due(), std::max(reporter_.next_due(), sender_.paused_until())});
  }

  Moment now() {
    return {kernel::monotonic_now(), kernel::wall_now(), std::uniform_real_distribution<double>(0, 1)(random_)};
  }

  void take_requests() {
    std::deque<Asked> requests;
    {
      const std::scoped_lock lock(mutex_);
      requests.swap(requests_);
    }
    for (Asked& one : requests) {
      sender_.add(std::move(one.request), std::move(one.done));
    }
  }

  void take_reports() {
    std::deque<notice::PodEvent> reports;
    {
      const std::scoped_lock lock(mutex_);
      reports.swap(reports_);
    }
    for (const notice::PodEvent& event : reports) {
      reporter_.report(event, now());
    }
  }

  void read_guard() {
    const std::uint64_t began = kernel::monotonic_now();
    if (began < poll_due_) {
      return;
    }
    poll_due_ = began + kPoll;
    Result<std::optional<notice::HostState>> state = guard_.read(Clock::now() + kGuardLimit);
    if (!state) {
      reporter_.miss_guard(state.error().message, now());
    } else if (*state) {
      reporter_.adopt(**std::move(state), now());
    } else {
      reporter_.confirm(now());
    }
  }

  // One request a turn: reports and requests of other threads come between two. The reporter has at most one of each
  // kind under way; what it wants now goes before requests that have failed already.
  void send_next() {
    const Moment moment = now();
    if (moment.now >= sender_.paused_until()) {
      if (std::optional<Reporter::Task> task = reporter_.next(moment)) {
        sender_.add(std::move(task->request), std::move(task->done));
      }
    }
    if (const apiserver::Request* request = sender_.next(moment.now)) {
      Result<apiserver::Response> answer = send(*request);
      if (stops_) {
        return;
      }
      is_access_bad_ = !answer || answer->status == 401;
      sender_.settle(std::move(answer), kernel::monotonic_now(), now().random);
    }
  }

  Result<apiserver::Response> send(const apiserver::Request& request) {
    TRY(refresh_access());
    return current_client()->send(request, Clock::now() + kAnswerLimit);
  }

  // A token, a client certificate or an authority may have been replaced since they were read.
  Result<void> refresh_access() {
    const std::shared_ptr<Client> client = current_client();
    const std::uint64_t now = kernel::monotonic_now();
    if (client && (!is_access_bad_ || now < access_due_)) {
      return {};
    }
    access_due_ = now + kAccessPause;
    Result<apiserver::Access> access = settings_.read_access();
    if (!access) {
      return client ? Result<void>() : std::unexpected(access.error());
    }
    if (!client || client->access() != *access) {
      const std::scoped_lock lock(mutex_);
      client_ = std::make_shared<Client>(*std::move(access));
      if (stops_) {
        client_->cancel();  // the destructor may have seen the one before
      }
    }
    return {};
  }

  [[nodiscard]] std::shared_ptr<Client> current_client() {
    const std::scoped_lock lock(mutex_);
    return client_;
  }

  // Said when the server answers again, and once a minute at most.
  void note_dropped() {
    std::uint64_t dropped = sender_.dropped() + reporter_.dropped();
    {
      const std::scoped_lock lock(mutex_);
      dropped += dropped_;
    }
    const std::uint64_t now = kernel::monotonic_now();
    if (dropped > said_dropped_ && !sender_.is_away() && now >= dropped_due_) {
      settings_.log("api-dropped count=" + std::to_string(dropped - said_dropped_), true);
      said_dropped_ = dropped;
      dropped_due_ = now + 60 * kSecond;
    }
  }

  ApiSettings settings_;
  GuardReader guard_;
  Reporter reporter_;
  Sender sender_;
  std::mt19937_64 random_;
  kernel::EventLoop loop_;
  std::uint64_t poll_due_ = 0;
  std::uint64_t access_due_ = 0;
  bool is_access_bad_ = false;
  std::uint64_t said_dropped_ = 0;
  std::uint64_t dropped_due_ = 0;

  std::mutex mutex_;                // of the four below
  std::shared_ptr<Client> client_;  // this object and a thread that sends
  std::deque<Asked> requests_;
  std::deque<notice::PodEvent> reports_;
  std::uint64_t dropped_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;  // the last: it uses all others
};

ApiThread::ApiThread(const kernel::Host& host, ApiSettings settings)
    : loop_(std::make_unique<Loop>(host, std::move(settings))) {}

ApiThread::~ApiThread() = default;

void ApiThread::request(apiserver::Request request, Done done) { loop_->request(std::move(request), std::move(done)); }
void ApiThread::report(const report::BlameRecord& record) { loop_->report(record); }
const std::string& ApiThread::node() const { return loop_->node(); }

}  // namespace hf::cluster
