// DockerGpus: docker offers --gpus only where it finds a program with the name of NVIDIA's hook. Where NVIDIA's is not
// installed, a symlink to holdfast-runtime takes its place.
#pragma once

#include <map>
#include <string>

#include "core/base/result.h"
#include "core/report/setup_report.h"
#include "kernel/files/host.h"

namespace hf::setup {

// Adds the step to the report, and carries it out where `report.is_done`. `program` is the path of holdfast-runtime.
Result<void> offer_gpus(const kernel::Host& host, const std::string& program, report::SetupReport& report);
// Removes the symlink, if it is ours.
Result<void> stop_offering_gpus(const kernel::Host& host, report::SetupReport& report);

using GpuLinks = std::map<std::string, std::string>;  // the targets of our symlinks, by path
GpuLinks read_gpu_links(const kernel::Host& host);
Result<void> restore_gpu_links(const kernel::Host& host, const GpuLinks& before);

}  // namespace hf::setup
