// Requirement: what an image wants of the driver, in the words of NVIDIA_REQUIRE_*.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hf::nvidia {

// What is known of this node: "cuda" → "12.4", "driver" → "550.54.15". What is not known refuses nobody.
using NodeFacts = std::map<std::string, std::string>;

// "cuda>=12.4 brand=tesla,driver>=470": blanks are "or", commas are "and". False only where no way out is left.
bool is_met(std::string_view requirement, const NodeFacts& facts);

// The variable that is not met, as "NVIDIA_REQUIRE_CUDA=cuda>=13.0"; absent where all are, or NVIDIA_DISABLE_REQUIRE is
// set.
std::optional<std::string> find_unmet(const std::map<std::string, std::string>& environment, const NodeFacts& facts);

// The newest CUDA that a driver of this version can run; "" for one nobody has heard of.
std::string cuda_of_driver(std::string_view version);

}  // namespace hf::nvidia
