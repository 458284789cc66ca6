// An engine's bytes on the NRI socket: whatever comes, the answers are frames that can be read again, and the same
// bytes in other pieces give the same answers.
#include <string>

#include "adapters/nri/session.h"
#include "check.h"
#include "core/device/inventory.h"
#include "host/nri_container.h"

namespace {

hf::nri::Handlers handlers() {
  hf::nri::Handlers handlers;
  handlers.configured = [](const std::string&) {};
  handlers.synchronize = [](const std::vector<hf::nri::Container>&) {};
  handlers.stopped = [](const hf::nri::Container&) {};
  handlers.update = [](const hf::nri::Container&) { return hf::nri::Adjustment{"0-1", "0", true, {}}; };
  handlers.create = [](const hf::nri::Container& container) {
    hf::nri::Adjustment adjustment;
    const hf::cpu::Tenant tenant = hf::host::tenant_of(container);
    check(!tenant.request || tenant.request->count > 0, "a request is for at least one CPU");
    adjustment.devices = hf::host::missing_nodes_of(container, {}, hf::device::built_in_classes());
    check(adjustment.devices.empty(), "a host without devices completes nothing");
    adjustment.cpus = tenant.request ? "2" : "0";
    return adjustment;
  };
  return handlers;
}

std::string answers_to(std::string_view bytes, std::size_t piece) {
  hf::nri::Session session("holdfast", "10", handlers());
  std::string answers;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const hf::Result<std::string> fed = session.feed(bytes.substr(at, piece));
    if (!fed) {
      check(!fed.error().message.empty(), "a refusal says why");
      break;
    }
    answers += *fed;
  }
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = answers_to(bytes, bytes.size() + 1);
  check(hf::nri::FrameReader().feed(whole).has_value(), "an answer is made of frames");
  const std::string pieces = answers_to(bytes, 5);
  check(pieces.starts_with(whole) || whole.empty(), "pieces do not matter");
  return 0;
}
