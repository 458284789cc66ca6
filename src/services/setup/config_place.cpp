#include "services/setup/config_place.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::setup {
namespace {

constexpr std::string_view kV3DropIns = "config-v3.toml.d";
constexpr const char* kDocument = " (docs/KUBERNETES.md, The runtime)";

// In the comments before the first key.
bool says_do_not_edit(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (!line.empty() && !line.starts_with('#')) {
      return false;
    }
    if (line.contains("DO NOT EDIT")) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> main_files_of(const std::string& file) {
  const std::string directory = directory_of(file);
  return directory.ends_with(".d") ? std::vector<std::string>{directory_of(directory) + "/config.toml"}
                                   : std::vector<std::string>{};
}

bool is_v3_drop_in(const std::string& file) { return base_name(directory_of(file)) == kV3DropIns; }

Result<void> check_no_template(const std::string& file, std::string_view text) {
  if (!file.ends_with(".tmpl") || (!trim(text).empty() && !text.contains("{{"))) {
    return {};
  }
  return fail(std::errc::operation_not_supported,
              file + " is a template of the whole config: add holdfast's lines by hand" + kDocument);
}

Result<void> check_lasts(const std::string& file, std::string_view text, const std::vector<std::string>& mains) {
  if (says_do_not_edit(text)) {
    return fail(std::errc::operation_not_supported,
                file +
                    " is generated (DO NOT EDIT) and would lose the registration: name a file that it imports; k3s "
                    "and RKE2: --config " +
                    directory_of(file).append("/").append(kV3DropIns) + "/99-holdfast.toml" + kDocument);
  }
  const auto imports = [](const std::string& main) { return main.contains(kV3DropIns); };
  if (is_v3_drop_in(file) && trim(text).empty() && !mains.empty() && std::ranges::none_of(mains, imports)) {
    return fail(std::errc::operation_not_supported,
                file + " would have no effect: " + main_files_of(file).front() +
                    " does not import it; older k3s and RKE2 need a template that is edited by hand" + kDocument);
  }
  return {};
}

}  // namespace hf::setup
