// Fresh: a CDI spec that follows the node: written anew when the driver, its numbers, the GPUs or their parts change.
#pragma once

#include <string>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "kernel/host.h"

namespace hf::specs {

class FreshSpec {
 public:
  explicit FreshSpec(const kernel::Host& host) : host_(host) {}

  // Costs little where nothing has changed: NVIDIA's library, which may wake a GPU, is asked only then. True: the file
  // was written. A node without the devices keeps the file it has: whoever asks for one is better told that it is
  // stale.
  Result<bool> refresh(const config::Config& config);

 private:
  const kernel::Host& host_;
  std::string last_;  // what the node looked like when the file was written
};

}  // namespace hf::specs
