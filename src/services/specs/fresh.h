// Fresh: keeps a CDI spec up to date; replaces it when the driver, its numbers, the GPUs or their MIG devices change.
#pragma once

#include <string>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "kernel/files/host.h"
#include "services/specs/generate.h"

namespace hf::specs {

class FreshSpec {
 public:
  explicit FreshSpec(const kernel::Host& host, Incomplete incomplete = Incomplete::refused)
      : host_(host), incomplete_(incomplete) {}

  // Cheap if nothing has changed: only after a change it asks NVIDIA's library, which may wake a GPU. Returns true if
  // the file was written. If the devices are gone the file stays, so that a request for one fails with "stale" rather
  // than "unknown".
  Result<bool> refresh(const config::Config& config);

 private:
  const kernel::Host& host_;
  Incomplete incomplete_;
  std::string last_;  // fingerprint of the host at the last attempt
};

}  // namespace hf::specs
