// What the API server and our own file say about claims and slices: any text is parsed, or refused with a message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/kube/claim_json.h"
#include "adapters/kube/slice_json.h"
#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const resource::Pool pool{"gpu.holdfast.dev", "node1", "uid"};
  const std::vector<resource::ClusterDevice> devices = {{{"gpu-0", {}, {}}, {}, "nvidia.com/gpu=GPU-0", {}, {}}};
  const Result<resource::ResourceClaim> claim = kube::parse_claim(text);
  check(claim || !claim.error().message.empty(), "an error has a message");
  if (claim) {
    const Result<resource::PreparedClaim> prepared = prepare({"n", "c", claim->uid}, *claim, pool, devices);
    check(prepared || !prepared.error().message.empty(), "an error has a message");
    for (const resource::PreparedDevice& device :
         prepared ? prepared->devices : std::vector<resource::PreparedDevice>()) {
      check(device.device == "gpu-0" && device.pool == "node1", "a claim gets devices of this host only");
    }
  }
  if (const Result<std::vector<resource::PreparedClaim>> file = kube::parse_prepared(text)) {
    check(kube::parse_prepared(kube::render_prepared(*file)) == *file, "there and back");
  }
  if (const Result<std::vector<resource::FoundSlice>> found =
          kube::parse_slices({"gpu.holdfast.dev", "node1", ""}, text)) {
    std::vector<resource::FoundSlice> after;
    for (const resource::SliceStep& step : plan_slices(pool, {devices[0].published}, *found)) {
      if (step.action != resource::SliceAction::remove) {
        after.push_back({step.slice, pool.node, pool.node_uid, ""});
      }
    }
    check(after.empty() || plan_slices(pool, {devices[0].published}, after).empty(), "one round is enough");
  }
  check(kube::refusal_in(500, text).find('\n') == std::string::npos, "a message is one line");
  return 0;
}
