// Doctor: collects facts, runs the checks and reports findings for the whole host or for some containers.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/host_report.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

struct Wanted {
  std::vector<std::string> containers;           // empty: all of them, and the host
  bool deep = false;                             // also open devices, and ask NVIDIA's libraries
  const report::Histories* histories = nullptr;  // what the guard has recorded; null: its journal is read
};

Result<report::DoctorReport> diagnose(host::OpenHost& opened, const Wanted& wanted);
Result<report::ContainerList> list_containers(host::OpenHost& opened);
Result<report::Explanation> explain(host::OpenHost& opened, const std::string& container, const std::string& device,
                                    bool deep);
Result<report::DeviceList> list_devices(host::OpenHost& opened, bool ask_libraries);

}  // namespace hf::doctor
