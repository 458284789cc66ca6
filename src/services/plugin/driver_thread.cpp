#include "services/plugin/driver_thread.h"

#include "kernel/files/file.h"
#include "kernel/process/module.h"
#include "kernel/process/thread.h"

namespace hf::plugin {
namespace {

constexpr std::chrono::milliseconds kLibraryLimit{10'000};  // a sleeping GPU takes seconds to wake

}  // namespace

DriverThread::DriverThread(const kernel::Host& host, RefreshSpecs refresh, OnReport on_report)
    : host_(host), refresh_(std::move(refresh)), on_report_(std::move(on_report)), thread_([this] {
        kernel::name_thread("hf-driver");
        while (!stops_) {
          loop_.run_until(kernel::EventLoop::kNever);
        }
      }) {}

DriverThread::~DriverThread() {
  loop_.post([this] { stops_ = true; });
  thread_.join();
}

void DriverThread::request(Task task) {
  loop_.post([this, task = std::move(task)] { carry_out(task); });
}

void DriverThread::carry_out(const Task& task) const {
  Report report;
  report.key = task.key;
  if (task.loads_uvm && task.config.runtime.creates_nodes) {
    if (const Result<void> loaded = kernel::load_module("nvidia-uvm"); !loaded) {
      report.problems.push_back(loaded.error().message);
    }
  }
  if (task.asks_libraries && kernel::exists(host_.root.get(), "proc/driver/nvidia/version")) {
    report.has_asked = true;
    Result<nvidia::LibraryAnswer> answer = nvidia::ask_libraries(kLibraryLimit);
    if (answer) {
      report.answer = *std::move(answer);
    } else {
      report.problems.push_back(answer.error().message);
    }
  }
  if (const Result<void> written = refresh_(task.config); !written) {
    report.spec_problem = written.error().message;
  }
  on_report_(std::move(report));
}

}  // namespace hf::plugin
