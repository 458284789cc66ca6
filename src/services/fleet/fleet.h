// Fleet: asks the nodes of a cluster side by side through kubectl, and merges their answers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/report/fleet.h"
#include "kernel/files/scratch_file.h"
#include "kernel/process/command_pool.h"
#include "render/fleet.h"
#include "services/fleet/question.h"

namespace hf::fleet {

enum class Documents : std::uint8_t { kept, dropped };

struct Settings {
  Inquiry inquiry;
  kernel::PoolLimits limits;
  report::Notes notes = report::Notes::hidden;
  Documents documents = Documents::dropped;                   // the nodes' own documents, on disk
  std::function<void(const std::string& activity)> progress;  // several times a second
};

class Answers {
 public:
  report::FleetReport report;  // the worst node first

  // Of a node; "" where none is kept.
  [[nodiscard]] Result<std::string> document_of(const report::FleetMember& member) const;
  Result<void> keep(const report::FleetMember& member, const std::string& document);  // on one line

 private:
  std::optional<kernel::ScratchFile> file_;
  std::map<std::pair<std::string, std::string>, kernel::ScratchFile::Place>
      places_;  // by namespace and name of the pod
};

Result<Answers> ask(Settings settings);

}  // namespace hf::fleet
