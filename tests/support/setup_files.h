// SetupFiles: config files of container engines as found on real hosts (tests/data/setup).
#pragma once

#include <string>
#include <vector>

namespace hf::test {

struct SetupFile {
  std::string name;
  std::string text;
};
std::vector<SetupFile> read_setup_files(const std::string& prefix);  // of their names; throws if there is none
std::string read_setup_file(const std::string& name);

}  // namespace hf::test
