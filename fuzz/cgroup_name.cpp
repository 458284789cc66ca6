// Cgroup name: a container that is parsed from a path lies on that path.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/base/text.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/cgroup_name.h"

namespace {

using namespace hf::container;

// The path without empty parts.
std::string plain(std::string_view path) {
  std::string text;
  for (const std::string_view part : hf::split(path, '/')) {
    text += part.empty() ? "" : "/" + std::string(part);
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  const std::optional<ParsedCgroupName> name = parse_cgroup_name(path);
  check(parse_cgroup_name(plain(path)).has_value() == name.has_value(), "empty parts mean nothing");
  if (!name) {
    return 0;
  }
  const std::string whole = plain(path);
  check(!name->id.empty(), "a container has an id");
  check(name->id.find('/') == std::string::npos, "an id is one part");
  check(name->pod_uid.find('/') == std::string::npos, "a pod's uid is one part");
  check(whole.starts_with(name->cgroup), "its cgroup is on the path");
  check(whole.size() == name->cgroup.size() || whole[name->cgroup.size()] == '/', "its cgroup ends where a part ends");
  const std::string_view last = hf::base_name(name->cgroup);
  check(last.find(name->id) != std::string_view::npos, "its cgroup has its id");
  check((name->driver == CgroupDriver::systemd) == !name->scope.empty(), "systemd's have a scope");
  check(name->scope.empty() || name->scope == last, "its scope is its cgroup");
  const std::optional<ParsedCgroupName> again = parse_cgroup_name(name->cgroup);
  check(again && again->id == name->id && again->pod_uid == name->pod_uid, "its cgroup names it by itself");
  return 0;
}
