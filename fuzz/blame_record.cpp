// Blame record: no line breaks the parser, and a record it accepts is rendered as a line that it accepts again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/report/blame.h"
#include "render/blame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const Result<report::BlameRecord> record = report::parse_blame_record(line);
  if (!record) {
    check(record.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  const std::string rendered = render_line(*record);
  check(rendered.size() <= report::kMostLine && rendered.find('\n') == std::string::npos, "a record is one line");
  const Result<report::BlameRecord> again = report::parse_blame_record(rendered);
  check(again && render_line(*again) == rendered, "a round trip changes nothing");
  (void)render_text(*record);
  return 0;
}
