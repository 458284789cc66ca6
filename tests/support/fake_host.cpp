#include "support/fake_host.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace hf::test {

FakeHost::FakeHost(const Files& files) : root_("/tmp/hf-test-host-XXXXXX") {
  if (::mkdtemp(root_.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  for (const auto& [path, text] : files) {
    const std::filesystem::path full = root_ + "/" + path;
    if (path.ends_with('/')) {
      std::filesystem::create_directories(full);
      continue;
    }
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
}

FakeHost::~FakeHost() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

kernel::Host FakeHost::open() const {
  Result<kernel::Host> host = kernel::open_host(root_);
  if (!host) {
    throw std::runtime_error(host.error().message);
  }
  return *std::move(host);
}

}  // namespace hf::test
