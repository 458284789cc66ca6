#include "cpu_option.h"

#include "core/base/text.h"
#include "core/cpu/options.h"

namespace hf::programs {

Result<void> check_option_names(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    for (const std::string_view entry : split(std::string_view(option), ',')) {
      TRY(cpu::check_option_name(trim(entry.substr(0, entry.find('=')))));
    }
  }
  return {};
}

}  // namespace hf::programs
