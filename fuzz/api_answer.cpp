// Answers of the API server and of the guard: no text breaks a parser, and what is written from it is one line of JSON.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/apiserver/objects.h"
#include "adapters/node_report/host_state.h"
#include "check.h"
#include "core/notice/host_state.h"
#include "render/notice.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string said = apiserver::message_of({500, std::string(text)});
  check(said.size() <= 304 && said.find('\n') == std::string::npos, "a message is one short line");
  if (const Result<apiserver::Taints> taints = apiserver::parse_taints(text)) {
    const apiserver::Request request = apiserver::patch_taints("node", *taints, true);
    check(request.body.find("holdfast.dev/device-access") != std::string::npos, "our taint is in the patch");
  }
  const Result<notice::HostState> state = node_report::parse_host_state(text);
  if (!state) {
    check(state.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  notice::StateWatch watch;
  (void)watch.follow(*state, 0);
  for (const notice::PodEvent& event : watch.follow(*state, 2 * notice::StateWatch::kSettled)) {
    check(notice::is_addressable(event.pod), "only pods that can be named have events");
    const std::string message = notice::render_message(event);
    check(message.size() <= 1024 && message.find('\n') == std::string::npos, "a message is one short line");
  }
  return 0;
}
