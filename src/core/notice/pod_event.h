// PodEvent: one thing that happened to the devices of a pod, as its owner is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/container/container.h"
#include "core/container/guard/event.h"
#include "core/report/blame.h"

namespace hf::notice {

// device_lost:          a container cannot open what it is owed, and it was not restored.
// device_restored:      it can open it again; the event says how long it could not.
// device_shielded:      its rules were rewritten without it, and the shield kept it open.
// device_at_risk:       the next reload or update would take it away.
// device_set_completed: its runtime had given it a part of the set; it got the rest.
// device_request_ignored: it asks for devices that kubelet did not allocate, and runs without them.
enum class Reason : std::uint8_t {
  device_lost,
  device_restored,
  device_shielded,
  device_at_risk,
  device_set_completed,
  device_request_ignored
};
std::string to_string(Reason reason);  // "DeviceLost"
bool is_warning(Reason reason);

struct PodEvent {
  container::Pod pod;
  std::string container;  // its id
  Reason reason = Reason::device_lost;
  std::int64_t at = 0;                                   // milliseconds since 1970
  std::vector<std::string> devices = {};                 // paths of device nodes
  container::Writer writer = {};                         // of its rules; unknown where no record says
  std::optional<std::uint64_t> duration = std::nullopt;  // nanoseconds without access
  std::string detail = {};                               // why it was not restored, or what threatens it
};

// Absent where the record is none of a pod's business, or the pod cannot be named: see is_addressable().
std::optional<PodEvent> event_of(const report::BlameRecord& record);

// Whether the pod's namespace and name can be parts of a path, and its uid is known. They are names that an engine
// wrote down on this host: the API server is told, never asked.
bool is_addressable(const container::Pod& pod);
bool is_object_name(std::string_view name);  // of a pod or a cluster node

}  // namespace hf::notice
