// CDI specs, YAML and JSON: device numbers stay within the kernel's limits, and a written spec is parsed unchanged.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/cdi/spec.h"
#include "check.h"

namespace {

using namespace hf;

void check_edits(const container::ContainerEdits& edits) {
  for (const container::NodeEdit& node : edits.nodes) {
    check(node.path.starts_with('/'), "a node has an absolute path");
    const bool can_exist =
        !node.device || (node.device->major <= device::kLastMajor && node.device->minor <= device::kLastMinor);
    check(can_exist, "a node can exist");
  }
  for (const container::HookEdit& hook : edits.hooks) {
    check(!hook.path.empty(), "a hook is a program");
  }
}

void check_writing(const cdi::Spec& spec) {
  cdi::NewSpec written;
  written.kind = spec.kind;
  written.all = spec.all;
  written.devices = {spec.devices.begin(), spec.devices.end()};
  for (const std::string& text : {render_yaml(written), render_json(written)}) {
    const Result<cdi::Spec> read = cdi::parse_spec(text, "f");
    check(read.has_value(), "what we write can be read");
    check(read->kind == spec.kind && read->all == spec.all && read->devices == spec.devices,
          "a round trip changes nothing");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<cdi::Spec> spec = cdi::parse_spec(text, "f");
  if (!spec) {
    check(!spec.error().message.empty(), "an error has a message");
    return 0;
  }
  check_edits(spec->all);
  for (const auto& [name, edits] : spec->devices) {
    check_edits(edits);
  }
  (void)cdi::faults_of(*spec);
  check_writing(*spec);
  return 0;
}
