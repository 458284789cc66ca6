#include "core/notice/pod_event.h"

#include <algorithm>

namespace hf::notice {
namespace {

using report::Action;
using report::BlameRecord;

std::optional<Reason> reason_of(const BlameRecord& record) {
  switch (record.action) {
    case Action::completed: return Reason::device_set_completed;
    case Action::recreated: return Reason::device_restored;
    case Action::shielded: return Reason::device_shielded;
    case Action::healed: return record.is_loss() ? std::optional(Reason::device_restored) : std::nullopt;
    case Action::observed:
    case Action::failed:
    case Action::waits:
      if (record.is_shielded) {
        return Reason::device_shielded;
      }
      return record.is_loss() ? std::optional(Reason::device_lost) : std::nullopt;
    case Action::none:
    case Action::hardened:
    case Action::locked: return std::nullopt;
  }
  return std::nullopt;
}

bool is_lower_or_digit(char character) {
  return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
}

// As Kubernetes checks names: RFC 1123, where a subdomain may have dots.
bool is_dns_name(std::string_view text, std::size_t longest, bool has_dots) {
  const auto fits = [has_dots](char character) {
    return is_lower_or_digit(character) || character == '-' || (has_dots && character == '.');
  };
  return !text.empty() && text.size() <= longest && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::ranges::all_of(text, fits) && text.find("..") == std::string_view::npos;
}

}  // namespace

std::string to_string(Reason reason) {
  switch (reason) {
    case Reason::device_lost: return "DeviceLost";
    case Reason::device_restored: return "DeviceRestored";
    case Reason::device_shielded: return "DeviceShielded";
    case Reason::device_at_risk: return "DeviceAtRisk";
    case Reason::device_set_completed: return "DeviceSetCompleted";
    case Reason::device_request_ignored: return "DeviceRequestIgnored";
  }
  return "";
}

bool is_warning(Reason reason) { return reason == Reason::device_lost || reason == Reason::device_at_risk; }

std::optional<PodEvent> event_of(const BlameRecord& record) {
  const std::optional<Reason> reason = reason_of(record);
  if (!reason || !record.pod || !is_addressable(*record.pod)) {
    return std::nullopt;
  }
  PodEvent event;
  event.pod = *record.pod;
  event.container = record.id;
  event.reason = *reason;
  event.at = record.at;
  event.devices = record.devices;
  event.writer = record.writer;
  event.duration = *reason == Reason::device_restored ? record.loss_ns : std::nullopt;
  event.detail = *reason == Reason::device_lost ? record.error : std::string();
  if (*reason == Reason::device_lost && event.detail.empty() && record.action == Action::observed) {
    event.detail = "the policy is to observe only";
  }
  return event;
}

bool is_object_name(std::string_view name) {
  constexpr std::size_t kSubdomain = 253;
  return is_dns_name(name, kSubdomain, true);
}

bool is_addressable(const container::Pod& pod) {
  constexpr std::size_t kLabel = 63;
  return pod.is_named_by_cri && is_dns_name(pod.uid, kLabel, false) && is_object_name(pod.name) &&
         is_dns_name(pod.name_space, kLabel, false) && is_dns_name(pod.container, kLabel, false);
}

}  // namespace hf::notice
