// OCI specs and states: device numbers stay within the kernel's limits, and the rules are those of the list alone.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/oci/oci_config.h"
#include "adapters/oci/spec.h"
#include "adapters/oci/state.h"
#include "check.h"

namespace {

using namespace hf;

void check_spec(std::string_view text) {
  const Result<oci::Spec> spec = oci::parse_spec(text);
  if (!spec) {
    check(!spec.error().message.empty(), "an error has a message");
    return;
  }
  for (const oci::SpecNode& node : spec->nodes) {
    check(node.path.starts_with('/'), "a node has an absolute path");
    check(node.device.major <= device::kLastMajor && node.device.minor <= device::kLastMinor, "a node can exist");
  }
  for (const auto& [name, value] : spec->environment) {
    check(name.find('=') == std::string::npos, "a name ends at its first equals sign");
    check(oci::environment_of(*spec, name) == value, "what is there is found");
  }
  if (const Result<device::OciRules> rules = oci::parse_device_rules(text); rules && !text.empty()) {
    check(spec->rules == *rules, "the rules are those of the list by itself");
  }
}

void check_state(const Result<oci::RuntimeState>& state) {
  if (!state) {
    check(!state.error().message.empty(), "an error has a message");
    return;
  }
  check(state->pid >= 0, "a pid is not negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_spec(text);
  check_state(oci::parse_runc_state(text));
  check_state(oci::parse_crun_status(text));
  return 0;
}
