#include "adapters/bytecode/program_file.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace hf::bytecode {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& record, const char* key) {
  const auto entry = record.find(key);
  return entry != record.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

Result<ProgramFile> parse_record(std::string_view text) {
  const Json record = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (record.is_discarded() || !record.is_object()) {
    return fail(std::errc::invalid_argument, "parse program record: not a JSON object");
  }
  const auto instructions = record.find("insns");
  if (instructions == record.end() || !instructions->is_array()) {
    return fail(std::errc::invalid_argument, "parse program record: no list \"insns\"");
  }
  std::string digits;
  for (const Json& instruction : *instructions) {
    if (!instruction.is_string()) {
      return fail(std::errc::invalid_argument, "parse program record: \"insns\" holds something else than strings");
    }
    digits += instruction.get_ref<const std::string&>() + "\n";
  }
  return ProgramFile{TRY(bpf::parse_hex(digits)), text_of(record, "prog_name"), text_of(record, "producer"),
                     text_of(record, "kernel")};
}

}  // namespace

Result<ProgramFile> parse_program_file(std::string_view text) {
  const bool is_json = trim(text).starts_with('{');
  ProgramFile file = is_json ? TRY(parse_record(text)) : ProgramFile{TRY(bpf::parse_hex(text)), {}, {}, {}};
  TRY(bpf::check_shape(file.code));
  return file;
}

}  // namespace hf::bytecode
