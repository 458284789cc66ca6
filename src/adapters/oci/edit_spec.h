// EditSpec: adds what a container needs for its devices to a config.json, and keeps every other character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/edits.h"

namespace hf::oci {

struct SpecChange {
  container::ContainerEdits edits;         // every device node with its numbers
  std::vector<std::string> dropped_hooks;  // paths of hooks that would do the same without the runtime's knowledge
};

struct EditedSpec {
  std::string text;
  std::vector<std::string> corrected;  // device nodes that the text had with stale numbers
};

// What is already there stays, so that applying a change again changes nothing. Fails where the text is no spec or has
// one of the fields in question twice; the error names the field.
Result<EditedSpec> edit_spec(std::string_view text, const SpecChange& change);

}  // namespace hf::oci
