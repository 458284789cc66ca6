// Catalog: what this host has to offer now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/nvidia/library.h"
#include "core/device/inventory.h"
#include "core/resource/offer.h"
#include "kernel/files/host.h"

namespace hf::plugin {

class Catalog {
 public:
  Catalog(const kernel::Host& host, const config::Config& config) : host_(host) { set_config(config); }

  void set_config(const config::Config& config);
  // What NVIDIA's libraries said last: they are not asked here, because they may hang.
  void set_answer(std::optional<nvidia::LibraryAnswer> answer) { answer_ = std::move(answer); }

  // Reads the devices. Device nodes that are missing or stale are created, where the driver has numbers for them.
  void refresh(const resource::DeviceProblems& problems);

  // Of the device classes it has only those that are offered: reading all takes several times as long.
  [[nodiscard]] const config::Config& config() const { return config_; }
  [[nodiscard]] const std::vector<resource::Offer>& offers() const { return offers_; }
  // The same devices for Dynamic Resource Allocation: without replicas, by UUID. Empty where that is not enabled.
  [[nodiscard]] const std::vector<resource::Offer>& cluster_offers() const { return cluster_offers_; }
  [[nodiscard]] const device::Inventory& inventory() const { return inventory_; }
  // Changes when the libraries have to be asked again: another driver, other GPUs, other MIG devices.
  [[nodiscard]] const std::string& driver_key() const { return driver_key_; }

 private:
  [[nodiscard]] device::Inventory read() const;
  [[nodiscard]] bool create_nodes(const device::Inventory& inventory) const;
  [[nodiscard]] std::string read_driver_key() const;

  const kernel::Host& host_;
  config::Config config_;
  std::optional<nvidia::LibraryAnswer> answer_;
  device::Inventory inventory_;
  std::vector<resource::Offer> offers_;
  std::vector<resource::Offer> cluster_offers_;
  std::string driver_key_;
};

}  // namespace hf::plugin
