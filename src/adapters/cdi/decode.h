// Decode: parses a spec from JSON text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/cdi/spec.h"

namespace hf::cdi {

// as_text: for a document that was YAML, where "195" and 195 may mean the same.
enum class Scalars : std::uint8_t { typed, as_text };

Result<Spec> decode_spec(std::string_view json, Scalars scalars);

}  // namespace hf::cdi
