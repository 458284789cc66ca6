#include "adapters/bytecode/program_file.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::bytecode {
namespace {

using document::Json;
using document::string_at;

Result<ProgramFile> parse_record(std::string_view text) {
  const Json record = TRY(document::parse_object(text, "program record"));
  const Json* instructions = document::value_at(record, "insns");
  if (instructions == nullptr || !instructions->is_array()) {
    return fail(std::errc::invalid_argument, "parse program record: no list \"insns\"");
  }
  std::string digits;
  for (const Json& instruction : *instructions) {
    if (!instruction.is_string()) {
      return fail(std::errc::invalid_argument, "parse program record: \"insns\" holds something else than strings");
    }
    digits += instruction.get_ref<const std::string&>() + "\n";
  }
  return ProgramFile{TRY(bpf::parse_hex(digits)), string_at(record, "prog_name").value_or(""),
                     string_at(record, "kernel").value_or("")};
}

}  // namespace

Result<ProgramFile> parse_program_file(std::string_view text) {
  const bool is_json = trim(text).starts_with('{');
  ProgramFile file = is_json ? TRY(parse_record(text)) : ProgramFile{TRY(bpf::parse_hex(text)), {}, {}};
  TRY(bpf::check_shape(file.code));
  return file;
}

}  // namespace hf::bytecode
