#include "support/setup_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hf::test {

std::vector<SetupFile> read_setup_files(const std::string& prefix) {
  std::vector<SetupFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_TEST_DATA "/setup")) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix)) {
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      files.push_back({name, text.str()});
    }
  }
  if (files.empty()) {
    throw std::runtime_error("no test data " + prefix);
  }
  std::ranges::sort(files, {}, &SetupFile::name);
  return files;
}

std::string read_setup_file(const std::string& name) { return read_setup_files(name).front().text; }

}  // namespace hf::test
