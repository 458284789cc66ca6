// FeaturesFile: the file in which node-feature-discovery finds the labels of this host's GPUs.
#pragma once

#include <functional>
#include <string>

#include "adapters/config/config.h"
#include "core/device/inventory.h"
#include "kernel/files/host.h"

namespace hf::plugin {

class FeaturesFile {
 public:
  using Log = std::function<void(const std::string& line, bool is_warning)>;

  FeaturesFile(const kernel::Host& host, Log log) : host_(host), log_(std::move(log)) {}

  // Replaces the file if its text would change; removes it where there is no GPU. Its directory must exist: it is that
  // of node-feature-discovery. The file stays when the program ends, because a restart does not change the GPUs.
  void refresh(const config::KubeSettings& settings, const device::Inventory& inventory);

 private:
  void write(const std::string& path, const std::string& text);

  const kernel::Host& host_;
  Log log_;
  std::string path_;  // of the file that was written last
  std::string last_problem_;
};

}  // namespace hf::plugin
