// ConfigPlace: where a config file of an engine lies, and whether a registration lasts there. k3s and RKE2 write
// containerd's main file at every start, from a template, and it imports the files of a directory beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::setup {

// containerd's main file, where this one is a drop-in: it lies in a directory NAME.d beside the main file.
std::vector<std::string> main_files_of(const std::string& file);
bool is_v3_drop_in(const std::string& file);  // of k3s or RKE2 with containerd 2

// A template is the whole config: one with only our lines would break the host, and one with actions is no TOML.
Result<void> check_no_template(const std::string& file, std::string_view text);
// Fails where a program would generate the file without our lines, or where no main file imports it.
Result<void> check_lasts(const std::string& file, std::string_view text, const std::vector<std::string>& mains);

}  // namespace hf::setup
