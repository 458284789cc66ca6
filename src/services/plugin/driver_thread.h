// DriverThread: does what may take seconds: loads a missing module, asks NVIDIA's libraries, writes CDI specs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/nvidia/library.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"

namespace hf::plugin {

class DriverThread {
 public:
  struct Task {
    config::Config config;
    bool loads_uvm = false;
    bool asks_libraries = false;
    std::string key;  // returned with the report
  };
  struct Report {
    std::string key;
    bool has_asked = false;
    std::optional<nvidia::LibraryAnswer> answer;
    std::optional<std::string> spec_problem;  // absent: the CDI specs are current
    std::vector<std::string> problems;
  };
  using OnReport = std::function<void(Report)>;  // called from this thread
  using RefreshSpecs = std::function<Result<void>(const config::Config&)>;

  DriverThread(const kernel::Host& host, RefreshSpecs refresh, OnReport on_report);
  DriverThread(const DriverThread&) = delete;
  DriverThread& operator=(const DriverThread&) = delete;
  ~DriverThread();

  void request(Task task);

 private:
  void carry_out(const Task& task) const;

  const kernel::Host& host_;
  RefreshSpecs refresh_;
  OnReport on_report_;
  kernel::EventLoop loop_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace hf::plugin
