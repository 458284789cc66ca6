#include "cpu_option.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/cpu/options.h"

namespace hf::programs {

Result<void> check_option_names(const std::vector<std::string>& options) {
  const std::map<std::string, bool> all = cpu::option_values({});
  std::vector<std::string> names;
  std::ranges::transform(all, std::back_inserter(names), [](const auto& entry) { return entry.first; });
  for (const std::string& option : options) {
    for (const std::string_view entry : split(std::string_view(option), ',')) {
      const std::string name(trim(entry.substr(0, entry.find('='))));
      if (!all.contains(name)) {
        const std::string meant = did_you_mean(name, names);
        return fail(std::errc::invalid_argument, "unknown CPU Manager Policy option: \"" + printable(name) + "\"" +
                                                     (meant.empty() ? "; there are " + join(names, ", ") : meant));
      }
    }
  }
  return {};
}

}  // namespace hf::programs
