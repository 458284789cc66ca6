// Complaint: reports to the engine, where it reads the runtime's own messages, why a container could not be created.
#pragma once

#include <string>

#include "adapters/oci/command_line.h"

namespace hf::shim {

enum class Level : std::uint8_t { info, warning, error };

// Writes one line to standard error and, if the engine named a log, one line there in the format it asked for. info: to
// the log alone, since engines show their users what is on standard error.
void complain(const oci::CommandLine& line, Level level, const std::string& message);

// One line about a decision, for `runtime.log`. A file that cannot be written stops no container.
void write_decision(const std::string& file, const oci::CommandLine& line, const std::string& decision);

}  // namespace hf::shim
