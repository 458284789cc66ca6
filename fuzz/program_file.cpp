// Program files: hex or JSON; whatever is read has a sound shape and survives analysis.
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
    check(!file.error().message.empty(), "an error has words");
    return 0;
  }
  check(hf::bpf::check_shape(file->code).has_value(), "a file that is read has a sound shape");
  check(hf::bpf::same(*hf::bpf::parse_hex(hf::bpf::to_hex(file->code)), file->code), "there and back");
  (void)hf::bpf::producer_of(file->code, file->name);
  (void)hf::bpf::analyse(file->code);
  return 0;
}
