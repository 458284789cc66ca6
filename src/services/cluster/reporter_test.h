// The fixture of Reporter's tests: an API server that answers at once, and a guard that is read every ten seconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/cluster/reporter.h"

namespace hf::cluster {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline const container::Pod kPod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};

class ReporterTest : public testing::Test {
 protected:
  Moment moment() const { return {now_, std::int64_t(now_ / 1'000'000), 0}; }

  void see(container::State state, const std::string& why_blind = "") {
    notice::HostState host;
    host.why_blind = why_blind;
    host.at = moment().wall;
    host.containers = {{"abc", "trainer-0/main", kPod, state, {"/dev/nvidia0"}, verdict_, is_hosts_fault_}};
    reporter_.adopt(host, moment());
  }

  // The guard is read every ten seconds; what is to be sent is answered at once.
  void run(std::uint64_t seconds, container::State state) {
    for (std::uint64_t i = 0; i < seconds; i += 10) {
      see(state);
      send();
      now_ += 10 * kSecond;
    }
  }

  void send() {
    while (const std::optional<Reporter::Task> task = reporter_.next(moment())) {
      if (task->request == apiserver::read_condition("gpu-7")) {
        ++reads_;
        task->done(present_);
        continue;
      }
      sent_.push_back(task->request);
      apiserver::Response response{200};
      if (!answers_.empty()) {
        response = answers_.front();
        answers_.erase(answers_.begin());
      }
      task->done(response);
    }
  }

  std::vector<apiserver::Request> sent(const std::string& part) const {
    std::vector<apiserver::Request> found;
    std::ranges::copy_if(sent_, std::back_inserter(found), [&part](const apiserver::Request& request) {
      return request.path.find(part) != std::string::npos;
    });
    return found;
  }

  std::size_t count(const std::string& method, std::size_t from = 0) const {
    return std::size_t(
        std::count_if(sent_.begin() + std::ptrdiff_t(from), sent_.end(),
                      [&method](const apiserver::Request& request) { return request.method == method; }));
  }

  static std::string node(bool is_tainted) {
    const std::string ours = R"({"key": ")" + std::string(notice::kTaintKey) + R"(", "effect": "NoSchedule"})";
    return R"({"metadata": {"resourceVersion": "5"}, "spec": {"taints": [)" + (is_tainted ? ours : "") + "]}}";
  }

  static nlohmann::json condition_in(const apiserver::Request& request) {
    return nlohmann::json::parse(request.body)["status"]["conditions"][0];
  }

  void set(bool events, bool condition, bool taint) {
    reporter_ = Reporter({.node = "gpu-7",
                          .writes_events = events,
                          .writes_condition = condition,
                          .writes_taint = taint,
                          .started = now_});
  }

  void report(notice::Reason reason, std::int64_t seconds_ago) {
    notice::PodEvent event;
    event.pod = kPod;
    event.container = "abc";
    event.reason = reason;
    event.at = moment().wall - 1000 * seconds_ago;
    reporter_.report(event, moment());
  }

  Reporter reporter_{{.node = "gpu-7"}};
  std::vector<apiserver::Request> sent_;
  std::vector<apiserver::Response> answers_;
  apiserver::Response present_{200, "{}"};  // the node before the first write
  int reads_ = 0;
  bool is_hosts_fault_ = true;
  std::string verdict_ = "HF-101: lost";
  std::uint64_t now_ = 1000 * kSecond;
};

}  // namespace hf::cluster
