// Cpu: maps, plans and states of CPUs as text, JSON and SVG.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/cpu_report.h"
#include "render/text_table.h"

namespace hf::report {

// " · 2 × AMD EPYC 7742 · 1007 GiB": what is known of it, "" where nothing is.
std::string described(const cpu::Topology& topology);
std::string memory_text(const cpu::Topology& topology, cpu::NumaId node);  // " · 503 GiB"

std::string render_text(const CpuMap& map);
std::string render_json(const CpuMap& map);  // a topology file again, and the owners
std::string render_svg(const CpuMap& map);
std::string render_text(const CpuPlan& plan);
std::string render_json(const CpuPlan& plan);
std::string render_text(const cpu::Simulation& simulation, std::size_t columns = kAnyWidth);
std::string render_json(const cpu::Simulation& simulation);
std::string render_text(const CpuStateReport& report, std::size_t columns = kAnyWidth);
std::string render_json(const CpuStateReport& report);

// CONTAINER, CPUS, NUMA, DEVICES ON, DISTANCE, PROBLEM: a row of `cpu status`.
std::vector<std::string> cpu_columns();
std::vector<std::string> cells_of(const CpuContainer& one);
std::string render_text(const CpuStatus& status, std::size_t columns = kAnyWidth);
std::string render_json(const CpuStatus& status);
std::string render_svg(const CpuStatus& status);  // the machine, coloured by owner

}  // namespace hf::report
