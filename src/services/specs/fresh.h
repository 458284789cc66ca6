// Fresh: keeps a CDI spec up to date; replaces it when the driver, its numbers, the GPUs or their MIG devices change.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "kernel/files/host.h"
#include "services/specs/generate.h"

namespace hf::specs {

class FreshSpec {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Class and driver root of the settings are those of the config.
  explicit FreshSpec(const kernel::Host& host, Settings settings = {}) : host_(host), settings_(std::move(settings)) {}

  // Cheap if nothing has changed: only after a change it asks NVIDIA's library, and every 5 minutes where a GPU may
  // have MIG devices. That wakes sleeping GPUs, so where one sleeps it asks only if there are MIG devices, which the
  // library alone can name, and something has changed. Returns true if the file was written. If the devices are gone
  // the file stays, so that a request for one fails with "stale" rather than "unknown".
  Result<bool> refresh(const config::Config& config, Time now = std::chrono::steady_clock::now());
  // Why the last attempt to write it failed; absent where the file is current.
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

 private:
  [[nodiscard]] bool must_ask_for_mig(const config::Config& config, const device::Inventory& inventory, Time now) const;

  const kernel::Host& host_;
  Settings settings_;
  std::optional<Error> problem_;
  std::string last_;  // fingerprint of the host at the last attempt
  Time asked_at_;     // when that was
};

}  // namespace hf::specs
