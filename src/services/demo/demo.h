// Demo: the demonstration on this machine: a container, its GPU, the attack, the diagnosis, the guard, the same attack
// again and again. Everything that it creates is removed in the end, whatever happens.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/report/demo_report.h"
#include "core/report/host_report.h"
#include "host/open_host.h"

namespace hf::demo {

enum class Length : std::uint8_t { once, seconds };  // one attack of each kind, or attacks for a number of seconds

struct Settings {
  Length length = Length::seconds;
  std::chrono::seconds guarded{40};
  bool may_download = true;  // may download an affected runc from this machine's package sources
  std::function<Result<report::DoctorReport>(const std::string& container)> diagnose;
  std::function<void(const std::string& line)> say;   // prints a line; "" is an empty one
  std::function<void(const std::string& line)> draw;  // shows progress; the next call overwrites it
};

// Fails where the demonstration cannot run on this machine. A GPU that stayed lost is no failure but in the report.
Result<report::DemoReport> run_demo(const host::OpenHost& open, const Settings& settings);

}  // namespace hf::demo
