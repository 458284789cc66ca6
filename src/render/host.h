// Host: containers, diagnoses, explanations and devices of the host as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/host_report.h"

namespace hf::report {

std::string render_text(const ContainerList& list, Width width);
std::string render_json(const ContainerList& list);
std::string render_text(const DoctorReport& report);
std::string render_json(const DoctorReport& report);
std::string summary_line(const DoctorReport& report);
std::string render_text(const Explanation& explanation);
std::string render_json(const Explanation& explanation);
std::string render_text(const DeviceList& list);
std::string render_json(const DeviceList& list);

}  // namespace hf::report
