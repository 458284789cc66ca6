// ProgramFile: a device filter in a file: hex digits, or a JSON record with what was known about it.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/bpf/instruction.h"

namespace hf::bytecode {

struct ProgramFile {
  bpf::Code code;
  std::string name;      // of the program, where the record has it
  std::string producer;  // likewise
  std::string kernel;    // the release it was read back from, likewise
};

// JSON (an object with "insns": a list of 16 hex digits each) or plain hex, one instruction a line. The code's shape is
// checked.
Result<ProgramFile> parse_program_file(std::string_view text);

}  // namespace hf::bytecode
