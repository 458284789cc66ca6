// Program files: hex or JSON; a file that is parsed has a valid shape and can be analysed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/bytecode/program_file.h"
#include "check.h"
#include "core/bpf/analyse.h"
#include "core/bpf/producer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hf::Result<hf::bytecode::ProgramFile> file = hf::bytecode::parse_program_file(text);
  if (!file) {
    check(!file.error().message.empty(), "an error has a message");
    return 0;
  }
  check(hf::bpf::check_shape(file->code).has_value(), "a file that is parsed has a valid shape");
  check(hf::bpf::same(*hf::bpf::parse_hex(hf::bpf::to_hex(file->code)), file->code), "a round trip changes nothing");
  (void)hf::bpf::producer_of(file->code, file->name);
  (void)hf::bpf::analyse(file->code);
  return 0;
}
