// Requests for devices in a config.json: the quick scan of the text misses none.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/nvidia/requirement.h"
#include "adapters/oci/spec.h"
#include "check.h"
#include "services/shim/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hf::nvidia::is_met(text, {{"cuda", "12.4"}, {"driver", "550.54.15"}});
  const hf::Result<hf::oci::Spec> spec = hf::oci::parse_spec(text);
  if (spec) {
    const hf::shim::DeviceRequest request = hf::shim::request_of(*spec, {}, hf::shim::Starter::containerd_shim);
    check(hf::shim::may_ask(text) || (!request.asks_nvidia() && request.cdi_names.empty()),
          "the quick scan finds a request");
  }
  return 0;
}
