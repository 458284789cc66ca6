#include "render/notice.h"

#include <algorithm>

#include "core/base/text.h"
#include "render/time.h"

namespace hf::notice {
namespace {

constexpr std::size_t kLongest = 1024;

std::string devices_of(const PodEvent& event) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> named(event.devices.begin(),
                                 event.devices.begin() + std::ptrdiff_t(std::min(event.devices.size(), kMostNamed)));
  if (named.size() < event.devices.size()) {
    named.push_back("and " + std::to_string(event.devices.size() - named.size()) + " more");
  }
  return named.empty() ? "its devices" : join(named, ", ");
}

std::string cause_of(const PodEvent& event) {
  return event.writer.is_known() ? ": its device rules were rewritten by " + title_of(event.writer) : std::string();
}

std::string detail_of(const PodEvent& event, const std::string& before) {
  return event.detail.empty() ? std::string() : before + event.detail;
}

std::string text_of(const PodEvent& event) {
  const std::string devices = devices_of(event);
  const std::string cause = cause_of(event);
  switch (event.reason) {
    case Reason::device_lost: return "cannot use " + devices + cause + detail_of(event, cause.empty() ? ": " : "; ");
    case Reason::device_restored:
      return "can use " + devices + " again" +
             (event.duration ? " after " + report::render_duration(*event.duration) : "") + cause;
    case Reason::device_shielded: return "kept " + devices + " open" + cause;
    case Reason::device_at_risk: return "may lose devices at the next reload or update" + detail_of(event, ": ");
    case Reason::device_set_completed: return "got " + devices + ", which its runtime had not given it";
    case Reason::device_request_ignored:
      return "asks for devices that no trusted source gives it, and runs without them: request them in the pod's "
             "resources";
  }
  return "";
}

}  // namespace

std::string render_message(const PodEvent& event) {
  return cut_to(printable("container " + event.pod.container + " " + text_of(event)), kLongest - 4);
}

}  // namespace hf::notice
