// Fleet: the answers of a cluster's nodes as one text, and as one document of JSON or YAML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/fleet.h"
#include "render/text_table.h"

namespace hf::report {

// Reduces what a node reports to what the text shows of it: within limits, whatever the node sends.
enum class Notes : std::uint8_t { shown, hidden };
NodeAnswer answer_of(FleetMember member, DoctorReport report, Notes notes);
NodeAnswer answer_of(FleetMember member, const ContainerList& list);
NodeAnswer answer_of(FleetMember member, std::vector<BlameRecord> records);
NodeAnswer answer_of(FleetMember member, const CpuStatus& status);
NodeAnswer no_answer(FleetMember member, const std::string& reason);

std::string render_text(const FleetReport& report, std::size_t columns = kAnyWidth);

// The document in parts, because the reports of the nodes may be too large to be in memory together.
class FleetDocument {
 public:
  enum class Format : std::uint8_t { json, yaml };
  explicit FleetDocument(Format format) : format_(format) {}

  [[nodiscard]] std::string head(const FleetReport& report) const;
  std::string node(const NodeAnswer& answer, std::string_view report);  // its own document; "" where it has none
  [[nodiscard]] std::string tail(const FleetReport& report) const;

 private:
  Format format_;
  bool is_first_ = true;
};

}  // namespace hf::report
