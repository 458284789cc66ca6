// Cpu: maps, plans and states of CPUs as text, JSON and SVG.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/cpu_report.h"

namespace hf::report {

std::string render_text(const CpuMap& map);
std::string render_json(const CpuMap& map);  // a topology file again, and the owners
std::string render_svg(const CpuMap& map);
std::string render_text(const CpuPlan& plan);
std::string render_json(const CpuPlan& plan);
std::string render_text(const cpu::Simulation& simulation);
std::string render_json(const cpu::Simulation& simulation);
std::string render_text(const CpuStateReport& report);
std::string render_json(const CpuStateReport& report);

std::string render_text(const CpuStatus& status);
std::string render_json(const CpuStatus& status);
std::string render_svg(const CpuStatus& status);  // the machine, coloured by owner

}  // namespace hf::report
