// ProgramFile: a device filter in a file, as hex digits or as a JSON record that also names its origin.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/bpf/instruction.h"

namespace hf::bytecode {

struct ProgramFile {
  bpf::Code code;
  std::string name;    // of the program, where the record has it
  std::string kernel;  // the kernel release it was dumped from, likewise
};

// JSON (an object with "insns": a list of 16 hex digits each) or plain hex, one instruction a line. The code's shape is
// checked.
Result<ProgramFile> parse_program_file(std::string_view text);

}  // namespace hf::bytecode
