// KubeletOffers: what kubelet is offered: a plugin for each resource, its calls, and how often it made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/resource/offer.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "kernel/watch/host_changes.h"
#include "services/plugin/catalog.h"
#include "services/plugin/plugin.h"

namespace hf::plugin {

struct KubeletOffersSettings {
  std::string version;
  std::function<void()> refresh;  // reads the devices as they are now, and publishes them
  std::function<void(const std::string& resource, const std::vector<std::string>& ids)> given;  // called by Allocate
  std::function<void(const std::string& line, bool is_warning)> log;
};

// One line for each device whose health differs from that in `before`, which may be null.
void log_changes(const resource::Offer& offer, const resource::Offer* before,
                 const std::function<void(const std::string& line, bool is_warning)>& log);

class KubeletOffers {
 public:
  KubeletOffers(const kernel::Host& host, kernel::EventLoop& loop, const Catalog& catalog,
                KubeletOffersSettings settings)
      : host_(host), loop_(loop), catalog_(catalog), settings_(std::move(settings)) {}

  // Watches kubelet's directory.
  Result<void> open();
  void publish(std::vector<resource::Offer> offers);
  [[nodiscard]] const std::vector<resource::Offer>& offers() const { return offers_; }  // as kubelet was told

  // Times are nanoseconds of CLOCK_MONOTONIC.
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;
  // What the DRA driver offers, for the status only.
  void note_driver(resource::OfferStatus driver);
  // For other programs; written where something has changed.
  void write_status();
  void write_status_again();  // its file is gone, or that of an instance that has ended
  // `stopped` is called in the loop, once for each resource; returns how often it will be.
  std::size_t stop(const std::function<void()>& stopped);

 private:
  Plugin& plugin_of(const std::string& resource);
  [[nodiscard]] const resource::Offer* find(const std::string& resource) const;
  Result<resource::Allocation> allocate(const std::string& resource, const std::vector<std::string>& ids);
  [[nodiscard]] Result<std::vector<std::string>> prefer(const std::string& resource,
                                                        const resource::Choice& choice) const;
  void check_directory();

  const kernel::Host& host_;
  kernel::EventLoop& loop_;
  const Catalog& catalog_;
  KubeletOffersSettings settings_;
  std::optional<kernel::DirectoryEvents> sockets_;
  std::vector<resource::Offer> offers_;
  std::map<std::string, std::unique_ptr<Plugin>> plugins_;
  std::map<std::string, bool> connected_;
  std::map<std::string, std::uint64_t> allocated_;  // how often, by resource
  std::map<std::string, std::uint64_t> refused_;
  std::optional<resource::OfferStatus> driver_;
  std::uint64_t next_check_ = 0;
  bool is_written_ = false;
  std::string status_problem_;  // as it was logged
};

}  // namespace hf::plugin
