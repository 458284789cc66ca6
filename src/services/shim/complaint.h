// Complaint: how an engine hears why a container could not be made: where it looks for the runtime's own words.
#pragma once

#include <string>

#include "adapters/oci/command_line.h"

namespace hf::shim {

enum class Grade : std::uint8_t { warning, error };

// One line on standard error and, where the engine named a log, one there in the format it asked for.
void complain(const oci::CommandLine& line, Grade grade, const std::string& words);

}  // namespace hf::shim
