#include "target.h"

#include <array>
#include <string_view>

#include <unistd.h>

#include "adapters/config/config.h"
#include "core/base/text.h"
#include "host/census.h"
#include "host/target.h"

namespace hf::programs {

Result<rules::NamedTarget> target_of(const std::string& argument) {
  constexpr std::array<std::string_view, 4> kForms = {"pid:", "cgroup:", "program:", "file:"};
  for (const std::string_view form : kForms) {
    if (argument.starts_with(form)) {
      rules::Target target = TRY(rules::parse_target(argument));
      return rules::NamedTarget{argument, std::move(target)};
    }
  }
  constexpr std::string_view kForced = "container:";
  const std::string name = argument.starts_with(kForced) ? argument.substr(kForced.size()) : argument;
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "find container " + quote(name));
  }
  const kernel::Host host = TRY(kernel::open_host());
  const host::Census census = TRY(host::take_census(host, TRY(config::read_config(host))));
  const std::vector<const host::DiscoveredContainer*> found = TRY(host::find_discovered(host, census, {name}));
  const container::Container& it = found.front()->container;
  return rules::NamedTarget{name, it};
}

}  // namespace hf::programs
