// OCI rules: every interpretation of a list that is parsed is a table.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/oci/oci_config.h"
#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf::device;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hf::Result<OciRules> rules = hf::oci::parse_device_rules(text);
  if (!rules) {
    check(!rules.error().message.empty(), "an error has a message");
    return 0;
  }
  if (rules->size() > 64) {
    return 0;
  }
  const Table kernel = meaning(*rules, OciReading::kernel);
  const Table runc = meaning(*rules, OciReading::runc);
  (void)meaning(*rules, OciReading::later_wins);
  const bool begins_with_all = !rules->empty() && !rules->front().rule.selector.kind;
  check(!begins_with_all || runc.contains(kernel), "runc's filter refuses no more than the kernel");
  return 0;
}
