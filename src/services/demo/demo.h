// Demo: the whole story on this machine: a container, its GPU, the attack, the diagnosis, the guard, the same attack
// again and again. Everything that was made is removed in the end, whatever happens.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/report/demo_report.h"
#include "core/report/node_report.h"
#include "kernel/filters.h"
#include "kernel/host.h"

namespace hf::demo {

enum class Length : std::uint8_t { once, seconds };  // one attack of each kind, or for so long

struct Settings {
  Length length = Length::seconds;
  std::chrono::seconds guarded{40};
  bool may_download = true;  // an affected runc, where this machine's package sources have it
  std::function<Result<report::DoctorReport>(const std::string& container)> diagnose;
  std::function<void(const std::string& line)> say;   // for people; "" is an empty line
  std::function<void(const std::string& line)> draw;  // the line that is being worked on; the next one takes its place
};

// Fails where the story cannot be told here. What stayed lost is in the report.
Result<report::DemoReport> run_demo(const kernel::Host& host, kernel::Filters& filters, const Settings& settings);

}  // namespace hf::demo
