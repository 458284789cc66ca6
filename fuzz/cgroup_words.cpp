// Cgroup words: a container that a path names lies on that path.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/base/text.h"
#include "core/container/cgroup_path.h"
#include "core/container/cgroup_words.h"

namespace {

using namespace hf::container;

// The path as a hierarchy has it: no part of it is empty.
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
  const std::optional<CgroupWords> words = read_cgroup_words(path);
  check(read_cgroup_words(plain(path)).has_value() == words.has_value(), "empty parts mean nothing");
  if (!words) {
    return 0;
  }
  const std::string whole = plain(path);
  check(!words->id.empty(), "a container has an id");
  check(words->id.find('/') == std::string::npos, "an id is one part");
  check(words->pod_uid.find('/') == std::string::npos, "a pod's uid is one part");
  check(whole.starts_with(words->cgroup), "its cgroup is on the path");
  check(whole.size() == words->cgroup.size() || whole[words->cgroup.size()] == '/',
        "its cgroup ends where a part ends");
  const std::string_view last = hf::name_in(words->cgroup);
  check(last.find(words->id) != std::string_view::npos, "its cgroup has its id");
  check((words->driver == CgroupDriver::systemd) == !words->scope.empty(), "systemd's have a scope");
  check(words->scope.empty() || words->scope == last, "its scope is its cgroup");
  const std::optional<CgroupWords> again = read_cgroup_words(words->cgroup);
  check(again && again->id == words->id && again->pod_uid == words->pod_uid, "its cgroup names it by itself");
  return 0;
}
