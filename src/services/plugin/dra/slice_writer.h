// SliceWriter: keeps the ResourceSlices of this host what they should be.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/resource/slice.h"
#include "kernel/files/clock.h"
#include "services/plugin/dra/api_calls.h"

namespace hf::plugin {

struct SliceSettings {
  resource::Pool pool;
  std::function<void(const std::string& line, bool is_warning)> log;
  std::function<std::uint64_t()> now = kernel::monotonic_now;  // nanoseconds of CLOCK_MONOTONIC
  std::function<double()> random;                              // from 0 to 1: hosts must not act together
};

class SliceWriter {
 public:
  // Answers must not come before `api` has returned.
  SliceWriter(Api api, SliceSettings settings) : api_(std::move(api)), settings_(std::move(settings)) {}

  void publish(std::vector<resource::PublishedDevice> devices);
  // A kubelet that starts removes the slices of its node, of all drivers, at some moment of its first half minute.
  void check_soon();
  void work();
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  void start(std::uint64_t now);
  [[nodiscard]] std::uint64_t between(std::uint64_t shortest, std::uint64_t longest) const;
  void read_node();
  void read_slices();
  void plan(const std::string& list);
  void carry_out(std::vector<resource::SliceStep> steps);
  void finish();
  void retry(const std::string& problem);
  void send(apiserver::Request request, std::function<void(const apiserver::Response&)> done);

  Api api_;
  SliceSettings settings_;
  std::vector<resource::PublishedDevice> devices_;
  std::set<std::uint64_t> soon_;  // of check_soon
  std::uint64_t next_check_ = kernel::EventLoop::kNever;
  std::uint64_t next_retry_ = kernel::EventLoop::kNever;
  std::uint64_t pause_ = 0;
  bool has_devices_ = false;  // it was told once what to publish
  bool is_busy_ = false;
  std::string last_problem_;  // said once
  std::string node_problem_;  // said once
};

}  // namespace hf::plugin
