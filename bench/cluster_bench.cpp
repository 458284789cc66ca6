// What a cluster of hosts costs its API server. The code that decides what is written, and when it is sent again
// (services/cluster: Reporter and Sender; services/plugin/dra: SliceWriter), runs for every host; the clock, the guards
// and the API server are simulated.
//
// holdfast_cluster_bench [HOSTS [PODS]]: 5,000 hosts with 8 pods each by default.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "adapters/kube/slice_json.h"
#include "core/container/entitlement/node_state.h"
#include "services/cluster/reporter.h"
#include "services/cluster/sender.h"
#include "services/plugin/dra/slice_writer.h"

namespace {

using namespace hf;
using cluster::Moment;
using cluster::Reporter;
using cluster::Sender;
using container::State;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1000 * kMillisecond;
constexpr std::uint64_t kMinute = 60 * kSecond;
constexpr std::uint64_t kPoll = 10 * kSecond;  // as services/cluster/api_thread.cpp reads the guard's snapshot
constexpr std::uint64_t kStart = 1000 * kSecond;

using Random = std::mt19937_64;
double fraction(Random& random) { return std::uniform_real_distribution<double>(0, 1)(random); }

// As the API server's priority and fairness treats one priority level: so many requests at once, a queue that is
// limited, and 429 for all beyond it.
class Server {
 public:
  static constexpr std::size_t kServedAtOnce = 20;
  static constexpr std::size_t kQueue = 500;

  struct Answer {
    std::uint64_t at = 0;
    Result<apiserver::Response> response;
  };

  Answer take(const apiserver::Request& request, std::uint64_t now) {
    ++arrivals_[(now - kStart) / kSecond];
    ++asked_;
    if (now >= away_from_ && now < away_until_) {
      ++away_;
      return {now + kMillisecond, fail(std::errc::connection_refused, "connect: refused")};
    }
    while (!ends_.empty() && ends_.top() <= now) {
      ends_.pop();
    }
    if (ends_.size() >= kServedAtOnce + kQueue) {
      ++busy_;
      return {now + 2 * kMillisecond, apiserver::Response{429, "", std::chrono::seconds(1)}};
    }
    // A request is served when all but kServedAtOnce - 1 of those before have ended.
    std::uint64_t begin = now;
    if (ends_.size() >= kServedAtOnce) {
      begin = std::max(now, busy_until_[served_ % kServedAtOnce]);
    }
    const std::uint64_t end = begin + 20 * kMillisecond + std::uint64_t(fraction(random_) * 60) * kMillisecond;
    busy_until_[served_ % kServedAtOnce] = end;
    ends_.push(end);
    ++served_;
    ++written_[(end - kStart) / kSecond];
    count(request, end);
    return {end, apiserver::Response{request.method == "POST" ? 201U : 200U}};
  }

  void leave(std::uint64_t from, std::uint64_t until) {
    away_from_ = from;
    away_until_ = until;
  }

  [[nodiscard]] std::uint64_t served() const { return served_; }

  void show(const char* what, std::uint64_t from) const {
    std::uint64_t peak = 0;
    std::uint64_t peak_asked = 0;
    for (const auto& [second, count] : written_) {
      peak = std::max(peak, count);
    }
    for (const auto& [second, count] : arrivals_) {
      peak_asked = std::max(peak_asked, count);
    }
    const std::uint64_t writes = created_ + changed_ + conditions_ + slices_;
    std::printf("%-34s %8llu %8llu %8llu %8llu %8llu %8llu %6llu %6llu %8llu %8llu %6.0f\n", what, ull(writes),
                ull(created_), ull(changed_), ull(conditions_), ull(slices_), ull(reads_), ull(peak), ull(peak_asked),
                ull(busy_), ull(away_), last_ > from ? double(last_ - from) / 1e9 : 0.0);
  }

 private:
  void count(const apiserver::Request& request, std::uint64_t end) {
    const bool is_event = request.path.find("/events") != std::string::npos;
    const bool is_slice = request.path.find("/resourceslices") != std::string::npos && request.method != "GET";
    last_ = is_event || is_slice ? std::max(last_, end) : last_;
    if (is_event) {
      ++(request.method == "POST" ? created_ : changed_);
    } else if (request.path.ends_with("/status")) {
      ++conditions_;
    } else {
      ++(request.method == "GET" ? reads_ : slices_);
    }
  }

  static unsigned long long ull(std::uint64_t value) { return value; }

  Random random_{7};
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> ends_;
  std::array<std::uint64_t, kServedAtOnce> busy_until_{};
  std::map<std::uint64_t, std::uint64_t> arrivals_;
  std::map<std::uint64_t, std::uint64_t> written_;
  std::uint64_t served_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t created_ = 0;
  std::uint64_t changed_ = 0;
  std::uint64_t conditions_ = 0;
  std::uint64_t slices_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t busy_ = 0;
  std::uint64_t away_ = 0;
  std::uint64_t last_ = 0;  // event or slice
  std::uint64_t away_from_ = ~std::uint64_t(0);
  std::uint64_t away_until_ = 0;
};

std::int64_t wall(std::uint64_t now) { return std::int64_t(now / kMillisecond); }

enum class Dra : std::uint8_t { off, on };

// One host: a guard with pods, each with a GPU, and the API thread's loop with the waiting left out.
class Node {
 public:
  Node(std::size_t number, std::size_t pods, Dra dra)
      : random_(number),
        reporter_({.node = "gpu-" + std::to_string(number)}),
        sender_([this](const std::string&, bool) { ++lines_; }),
        slices_([this](apiserver::Request request,
                       plugin::ApiDone done) { sender_.add(std::move(request), std::move(done)); },
                {{"gpu.holdfast.dev", "gpu-" + std::to_string(number), ""},
                 [this](const std::string&, bool is_warning) { lines_ += is_warning ? 1 : 0; },
                 [this] { return now_; },
                 [this] { return fraction(random_); }}),
        poll_due_(kStart + std::uint64_t(fraction(random_) * double(kPoll))) {
    for (std::size_t pod = 0; pod < pods; ++pod) {
      const std::string name = "trainer-" + std::to_string(number) + "-" + std::to_string(pod);
      const container::Pod known{"uid-" + name, name, "ml", "main", true};
      state_.containers.push_back({name, name + "/main", known, State::ok, {"/dev/nvidia0"}, "HF-101: lost the right"});
    }
    if (dra == Dra::on) {
      publish(pods);
    }
  }

  void publish(std::size_t devices) {
    std::vector<resource::PublishedDevice> published;
    for (std::size_t i = 0; i < devices; ++i) {
      published.push_back({"gpu-" + std::to_string(i), {{"uuid", "GPU-" + std::to_string(i)}}, {}});
    }
    slices_.publish(std::move(published));
  }

  void restart_kubelet() {
    slice_.clear();  // it removes them
    slices_.check_soon();
  }

  void report(notice::Reason reason, std::uint64_t now) {
    for (const notice::ContainerState& it : state_.containers) {
      notice::PodEvent event;
      event.pod = *it.pod;
      event.container = it.id;
      event.reason = reason;
      event.at = wall(now);
      event.devices = it.devices;
      event.writer = {container::Pid{90}, "systemctl", "", "", {}, "systemd", {}, ""};
      event.duration = 3 * kMillisecond;
      reporter_.report(event, {now, wall(now), fraction(random_)});
    }
  }

  void set(State state) {
    for (notice::ContainerState& it : state_.containers) {
      it.state = state;
    }
    snapshot_due_ = 0;
  }

  // Returns when it has to be called again.
  std::uint64_t work(Server& server, std::uint64_t now) {
    now_ = now;
    if (answer_ && now >= answer_->at) {
      sender_.settle(std::move(answer_->response), now, fraction(random_));
      answer_.reset();
    }
    const Moment moment{now, wall(now), fraction(random_)};
    if (now >= poll_due_) {
      poll_due_ = now + kPoll;
      if (now >= snapshot_due_) {  // the guard publishes at least so often
        snapshot_due_ = now + 3 * kPoll;
        state_.at = wall(now);
        reporter_.adopt(state_, moment);
      } else {
        reporter_.confirm(moment);
      }
    }
    slices_.work();
    if (!answer_) {
      send_next(server, moment);
    }
    if (answer_) {
      return std::min(poll_due_, answer_->at);
    }
    return std::min(
        {poll_due_, slices_.next_due(), sender_.next_due(), std::max(reporter_.next_due(), sender_.paused_until())});
  }

  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t dropped() const { return reporter_.dropped() + sender_.dropped(); }

 private:
  void send_next(Server& server, const Moment& moment) {
    if (moment.now >= sender_.paused_until()) {
      if (std::optional<Reporter::Task> task = reporter_.next(moment)) {
        sender_.add(std::move(task->request), std::move(task->done));
      }
    }
    if (const apiserver::Request* request = sender_.next(moment.now)) {
      answer_.emplace(server.take(*request, moment.now));
      if (answer_->response && answer_->response->status < 300) {
        answer_->response->body = answer_to(*request);
      }
    }
  }

  // What is read of slices, and of the node that owns them.
  std::string answer_to(const apiserver::Request& request) {
    if (request.path.find("/resourceslices") == std::string::npos) {
      return R"({"metadata": {"uid": "1-2-3"}})";
    }
    if (request.method != "GET") {
      slice_ = request.method == "DELETE" ? "" : request.body;
    }
    return R"({"items": [)" + slice_ + "]}";
  }

  Random random_;
  notice::HostState state_;
  Reporter reporter_;
  Sender sender_;
  plugin::SliceWriter slices_;
  std::string slice_;  // as the server has it
  std::uint64_t now_ = kStart;
  std::uint64_t poll_due_;
  std::uint64_t snapshot_due_ = 0;
  std::optional<Server::Answer> answer_;
  std::uint64_t lines_ = 0;
};

class Simulation {
 public:
  Simulation(std::size_t hosts, std::size_t pods, Dra dra = Dra::off) {
    for (std::size_t i = 0; i < hosts; ++i) {
      nodes_.push_back(std::make_unique<Node>(i, pods, dra));
      due_.emplace(kStart, i);
    }
  }

  void run_until(std::uint64_t end) {
    while (!due_.empty() && due_.top().first < end) {
      const auto [now, index] = due_.top();
      due_.pop();
      now_ = std::max(now_, now);
      const std::uint64_t next = nodes_[index]->work(server_, now_);
      due_.emplace(std::max(next, now_ + 1), index);
    }
    now_ = end;
  }

  void each(const std::function<void(Node&)>& change) {
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      change(*nodes_[i]);
      due.emplace(now_, i);  // each looks at once
    }
    due_.swap(due);
  }

  Server& server() { return server_; }
  // What happened before does not count.
  void forget() { server_ = Server(); }

  void show_hosts() const {
    std::uint64_t lines = 0;
    std::uint64_t dropped = 0;
    for (const auto& node : nodes_) {
      lines = std::max(lines, node->lines());
      dropped += node->dropped();
    }
    std::printf("%34s log lines of a host: at most %llu; events dropped: %llu\n", "", (unsigned long long)lines,
                (unsigned long long)dropped);
  }

 private:
  using Due = std::pair<std::uint64_t, std::size_t>;

  std::vector<std::unique_ptr<Node>> nodes_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  Server server_;
  std::uint64_t now_ = kStart;
};

constexpr std::uint64_t kCalm = kStart + 20 * kMinute;  // by then all have begun, at different times

void calm(const char* what, std::size_t hosts, std::size_t pods, Dra dra) {
  Simulation simulation(hosts, pods, dra);
  simulation.run_until(kCalm);
  simulation.forget();
  simulation.run_until(kCalm + 60 * kMinute);
  simulation.server().show(what, kCalm);
}

void start(const char* what, std::size_t hosts, std::size_t pods, Dra dra) {
  Simulation simulation(hosts, pods, dra);
  simulation.run_until(kStart + 2 * kMinute);
  simulation.server().show(what, kStart);
}

// All slices change at once, and the server is away for five minutes or not.
void change_slices(const char* what, std::size_t hosts, std::size_t pods, bool is_away) {
  Simulation simulation(hosts, pods, Dra::on);
  simulation.run_until(kCalm);
  simulation.forget();
  if (is_away) {
    simulation.server().leave(kCalm - kSecond, kCalm + 5 * kMinute);
  }
  simulation.each([pods](Node& node) { node.publish(pods - 1); });
  simulation.run_until(kCalm + 15 * kMinute);
  simulation.server().show(what, kCalm);
  simulation.show_hosts();
}

void restart_kubelets(std::size_t hosts, std::size_t pods) {
  Simulation simulation(hosts, pods, Dra::on);
  simulation.run_until(kCalm);
  simulation.forget();
  simulation.each([](Node& node) { node.restart_kubelet(); });
  simulation.run_until(kCalm + 2 * kMinute);
  simulation.server().show("DRA: all kubelets restart at once", kCalm);
}

// One host, 20 attacks a second on each of its pods.
void attack(std::size_t pods) {
  Simulation simulation(1, pods);
  simulation.run_until(kCalm);
  simulation.forget();
  for (std::uint64_t now = kCalm; now < kCalm + 60 * kMinute; now += kSecond / 20) {
    simulation.each([now](Node& node) { node.report(notice::Reason::device_restored, now); });
    simulation.run_until(now + kSecond / 20);
  }
  simulation.server().show("one host attacked for an hour", kCalm);
  simulation.show_hosts();
}

// `systemctl daemon-reload` on every host at once, `times` times, half a minute apart.
void reload(const char* what, std::size_t hosts, std::size_t pods, std::size_t times) {
  Simulation simulation(hosts, pods);
  simulation.run_until(kCalm);
  simulation.forget();
  for (std::size_t i = 0; i < times; ++i) {
    const std::uint64_t now = kCalm + i * 30 * kSecond;
    simulation.run_until(now);
    simulation.each([now](Node& node) { node.report(notice::Reason::device_restored, now); });
  }
  simulation.run_until(kCalm + 4 * kMinute + times * 30 * kSecond);
  simulation.server().show(what, kCalm);
  simulation.show_hosts();
}

// No host can repair it for ten minutes: warnings, and the condition of every node.
void lose(const char* what, std::size_t hosts, std::size_t pods, bool is_away) {
  Simulation simulation(hosts, pods);
  simulation.run_until(kCalm);
  simulation.forget();
  if (is_away) {
    simulation.server().leave(kCalm - kSecond, kCalm + 5 * kMinute);
  }
  simulation.each([](Node& node) {
    node.report(notice::Reason::device_lost, kCalm);
    node.set(State::lost);
  });
  simulation.run_until(kCalm + 10 * kMinute);
  simulation.each([](Node& node) { node.set(State::ok); });
  simulation.run_until(kCalm + 15 * kMinute);
  simulation.server().show(what, kCalm);
  simulation.show_hosts();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t hosts = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000;
  const std::size_t pods = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 8;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("%zu hosts with %zu pods; a server of %zu requests at once, 20 to 80 ms each, a queue of %zu\n\n", hosts,
              pods, Server::kServedAtOnce, Server::kQueue);
  std::printf("%-34s %8s %8s %8s %8s %8s %8s %6s %6s %8s %8s %6s\n", "", "writes", "created", "changed", "status",
              "slices", "reads", "peak/s", "asked", "429", "refused", "done s");
  calm("calm, an hour", hosts, pods, Dra::off);
  start("all hosts start at once", hosts, pods, Dra::off);
  attack(pods);
  reload("daemon-reload on all hosts", hosts, pods, 1);
  reload("the same, 20 times in 10 minutes", hosts, pods, 20);
  lose("lost on all hosts for 10 minutes", hosts, pods, false);
  lose("the same, server away for 5", hosts, pods, true);
  calm("DRA: calm, an hour", hosts, pods, Dra::on);
  start("DRA: all hosts start at once", hosts, pods, Dra::on);
  restart_kubelets(hosts, pods);
  change_slices("DRA: a GPU of every host fails", hosts, pods, false);
  change_slices("the same, server away for 5", hosts, pods, true);
  return 0;
}
