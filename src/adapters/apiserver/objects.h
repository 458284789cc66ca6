// Objects: the requests that write events, conditions and taints, and what is read from the server's answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/apiserver/client.h"
#include "core/notice/condition.h"
#include "core/notice/event_queue.h"

namespace hf::apiserver {

// `node`: the cluster node that reports it. core/v1: `kubectl describe pod` shows its count ("x12 over 5m").
Request create_event(const notice::EventWrite& write, const std::string& node);
Request change_event(const notice::EventWrite& write);

struct ConditionWrite {
  notice::Condition condition;
  std::int64_t at = 0;                     // milliseconds since 1970
  std::optional<std::int64_t> changed_at;  // when its status became this one; absent: it has not changed
};
Request patch_condition(const std::string& node, const ConditionWrite& write);
// A patch without changes: its answer is the node, for which the right to patch its status is enough.
Request read_condition(const std::string& node);
std::optional<notice::Status> find_status(std::string_view node);  // of our condition, in that answer

// The taints of a cluster node. The server replaces the list as a whole, so it is read first, and written only where
// the node is still the one that was read.
struct Taints {
  std::string resource_version;
  std::string others = "[]";  // all but ours, as JSON
  bool has_ours = false;
};
Request read_node(const std::string& node);
Result<Taints> parse_taints(std::string_view body);
Request patch_taints(const std::string& node, const Taints& before, bool has_ours);

// What the server says about an error, in one line: the message of its Status object.
std::string message_of(const Response& response);

}  // namespace hf::apiserver
