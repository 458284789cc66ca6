#include "services/rules/target.h"

#include <limits>
#include <optional>

#include "core/base/text.h"

namespace hf::rules {

Result<Target> parse_target(std::string_view text) {
  const auto malformed = [text](const std::string& why) {
    return fail(std::errc::invalid_argument, "target " + quote(text) + ": " + why);
  };
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (kind == "pid") {
    const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(rest);
    const bool fits = number && *number > 0 && *number <= std::uint32_t(std::numeric_limits<std::int32_t>::max());
    return fits ? Result<Target>(container::Pid{std::int32_t(*number)}) : malformed("pid:N wants a process number");
  }
  if (kind == "program") {
    const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(rest);
    return number ? Result<Target>(container::ProgramId{*number}) : malformed("program:ID wants a program's number");
  }
  if (kind == "cgroup" && rest.starts_with('/')) {
    return CgroupDirectory{std::string(rest)};
  }
  if (kind == "cgroup") {
    return malformed("cgroup:PATH wants a path that begins with /");
  }
  if (kind == "file" && !rest.empty()) {
    return FilePath{std::string(rest)};
  }
  return malformed("want pid:N, cgroup:PATH, program:ID or file:PATH");
}

}  // namespace hf::rules
