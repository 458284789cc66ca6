// Host: containers, diagnoses, explanations and devices of the host as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/host_report.h"
#include "render/text_table.h"

namespace hf::report {

// CONTAINER, POD, ENGINE, DEVICES, STATE, CPUS, SINCE: a row of `ps`. `now`: seconds since 1970.
std::vector<std::string> container_columns();
std::vector<std::string> cells_of(const ContainerLine& line, std::int64_t now);
std::string render_text(const ContainerList& list, Width width, std::size_t columns = kAnyWidth);
std::string render_json(const ContainerList& list);
std::string render_text(const DoctorReport& report);
std::string render_json(const DoctorReport& report);
std::string summary_line(const DoctorReport& report);
std::string render_worst(const DoctorReport& report);  // one line; "" where there is no problem
std::string render_text(const Explanation& explanation);
std::string render_json(const Explanation& explanation);
std::string render_text(const DeviceList& list, std::size_t columns = kAnyWidth);
std::string render_json(const DeviceList& list);

}  // namespace hf::report
