// SliceWriter: keeps the ResourceSlices of this host what they should be.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/resource/slice.h"
#include "services/plugin/dra/api_calls.h"

namespace hf::plugin {

class SliceWriter {
 public:
  using WriteLog = std::function<void(const std::string& line, bool is_warning)>;

  SliceWriter(ApiCalls& calls, resource::Pool pool, WriteLog log)
      : calls_(calls), pool_(std::move(pool)), log_(std::move(log)) {}

  // Times are nanoseconds of CLOCK_MONOTONIC.
  void publish(std::vector<resource::PublishedDevice> devices, std::uint64_t now);
  // A kubelet that starts removes the slices of its node, of all drivers, at some moment of its first half minute.
  void check_soon(std::uint64_t now);
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  void start(std::uint64_t now);
  void read_node();
  void read_slices();
  void plan(const std::string& list);
  void carry_out(std::vector<resource::SliceStep> steps);
  void finish();
  void retry(const std::string& problem);
  void send(apiserver::Request request, std::function<void(const apiserver::Response&)> done);

  ApiCalls& calls_;
  resource::Pool pool_;
  WriteLog log_;
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
