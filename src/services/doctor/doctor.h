// Doctor: facts, checks and findings of the whole node, or of some containers.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/node_report.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

struct Wanted {
  std::vector<std::string> containers;  // none: all, and the host
  bool deep = false;                    // also open devices, and ask NVIDIA's libraries
  bool journal = true;                  // also what the guard has recorded
};

Result<report::DoctorReport> diagnose(Machine& machine, const Wanted& wanted);
Result<report::ContainerList> list_containers(Machine& machine);
Result<report::Explanation> explain(Machine& machine, const std::string& container, const std::string& device,
                                    bool deep);
Result<report::DeviceList> list_devices(Machine& machine, bool ask_libraries);

}  // namespace hf::doctor
