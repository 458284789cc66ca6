#include "services/demo/trial.h"

#include <algorithm>
#include <utility>

namespace hf::demo {

report::DemoContainer describe(const Workload& workload, const Gpu& gpu) {
  report::DemoContainer figures;
  figures.id = workload.id();
  figures.hierarchy = workload.hierarchy();
  figures.launcher = workload.launcher();
  figures.cgroup = workload.cgroup().where;
  figures.is_stand_in = gpu.is_stand_in;
  figures.notes = workload.notes();
  if (is_attacked_by_its_runtime(workload)) {
    figures.delay =
        "until runc has ended, 100 ms at most: it reads the rules back, and fails where they are not its own";
  }
  for (const container::WantedNode& node : gpu.nodes) {
    figures.nodes.push_back(node.path);
  }
  return figures;
}

bool add_record(std::vector<Trial>& trials, const report::BlameRecord& record) {
  const auto trial = std::ranges::find_if(trials, [&](const Trial& one) { return one.workload->id() == record.id; });
  if (trial == trials.end() || record.devices.empty()) {
    return false;
  }
  trial->figures.held += record.is_shielded ? 1 : 0;
  trial->figures.held_opens += record.held_opens;
  ++trial->figures.writers[record.writer.is_known() ? record.writer.name : "an unknown process"];
  if (record.loss_ns) {
    trial->figures.losses_ns.push_back(*record.loss_ns);
  }
  return true;
}

report::DemoMoment sum_of(const std::vector<Trial>& trials) {
  report::DemoMoment moment;
  std::vector<std::uint64_t> losses;
  for (const Trial& trial : trials) {
    moment.attacks += trial.figures.attack_count();
    moment.repaired += trial.figures.repaired;
    moment.refused += trial.workload->tally().read().refused;
    losses.insert(losses.end(), trial.figures.losses_ns.begin(), trial.figures.losses_ns.end());
  }
  moment.losses = report::spread_of(std::move(losses));
  return moment;
}

}  // namespace hf::demo
