// Trial: one container of the demonstration with its attacks and the figures that were measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/report/blame.h"
#include "core/report/demo_report.h"
#include "services/demo/attack.h"
#include "services/demo/workload.h"

namespace hf::demo {

struct Trial {
  std::unique_ptr<Workload> workload;
  std::vector<Attack> attacks;
  std::size_t next = 0;  // index of the next attack
  report::DemoContainer figures;
  std::uint64_t lost_since = 0;
};

// What is known of a container before its first attack.
report::DemoContainer describe(const Workload& workload, const Gpu& gpu);

// Adds what the guard recorded to the figures of the container. False: the record is of no device of these containers.
bool add_record(std::vector<Trial>& trials, const report::BlameRecord& record);

// The sums over all containers; the time and the last writer are left open.
report::DemoMoment sum_of(const std::vector<Trial>& trials);

}  // namespace hf::demo
