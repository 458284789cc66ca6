// EditSpec: a config.json with what a container needs for its devices, and every other letter as it was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/edits.h"

namespace hf::oci {

struct SpecChange {
  container::ContainerEdits edits;         // every node with its numbers
  std::vector<std::string> dropped_hooks;  // paths of those who would do the same behind the runtime's back
};

struct EditedSpec {
  std::string text;
  std::vector<std::string> corrected;  // nodes that were there with numbers of another time
};

// What is there already stays as it is: a change made twice is a change made once. Fails, and names the place, where
// the text is no spec or has one of the parts in question twice.
Result<EditedSpec> edit_spec(std::string_view text, const SpecChange& change);

// Resources as `update` is given them, with these nodes allowed as well, where they have rules for devices at all.
Result<std::string> allow_in_resources(std::string_view text, const std::vector<container::NodeEdit>& nodes);

}  // namespace hf::oci
