#include "services/plugin/kubelet_offers.h"

#include <algorithm>
#include <utility>

#include "adapters/journal/plugin_status.h"
#include "core/base/text.h"
#include "core/resource/allocation.h"
#include "core/resource/preference.h"
#include "kernel/files/clock.h"

namespace hf::plugin {

using resource::Offer;
using resource::OfferedDevice;

namespace {

constexpr std::uint64_t kCheckPause = 1'000'000'000;  // a directory that was removed and made again is another one

const Offer* find_in(const std::vector<Offer>& offers, const std::string& resource) {
  const auto found = std::ranges::find(offers, resource, &Offer::resource);
  return found == offers.end() ? nullptr : &*found;
}

}  // namespace

void log_changes(const Offer& offer, const Offer* before,
                 const std::function<void(const std::string& line, bool is_warning)>& log) {
  for (const OfferedDevice& device : offer.devices) {
    const OfferedDevice* const known = before == nullptr ? nullptr : before->find(device.id);
    if (known == nullptr || known->problem != device.problem) {
      log((device.is_healthy() ? "healthy" : "unhealthy") + (" resource=" + offer.resource) + " device=" + device.id +
              (device.problem ? " why=" + quote(*device.problem) : ""),
          !device.is_healthy());
    }
  }
}

Result<void> KubeletOffers::open() {
  sockets_.emplace(TRY(kernel::DirectoryEvents::open()));
  return loop_.watch(sockets_->descriptor(), [this] {
    if (sockets_->take()) {
      check_directory();
    }
  });
}

void KubeletOffers::publish(std::vector<Offer> offers) {
  // A resource that has lost all its devices stays, with an empty list: kubelet then knows that there are none.
  for (const auto& [resource, plugin] : plugins_) {
    if (find_in(offers, resource) == nullptr) {
      offers.push_back({resource, {}, 1, {}});
    }
  }
  for (const Offer& offer : offers) {
    const Offer* const before = find(offer.resource);
    if (before == nullptr || *before != offer) {
      log_changes(offer, before, settings_.log);
      plugin_of(offer.resource).publish(offer);
      is_written_ = false;
    }
  }
  offers_ = std::move(offers);
}

Plugin& KubeletOffers::plugin_of(const std::string& resource) {
  std::unique_ptr<Plugin>& plugin = plugins_[resource];
  if (!plugin) {
    const config::KubeSettings& kube = catalog_.config().kube;
    PluginSettings settings;
    settings.resource = resource;
    settings.directory = kube.uses_registry ? kube.registry : kube.directory;
    settings.is_found = kube.uses_registry;
    settings.log = settings_.log;
    settings.handlers.allocate = [this, resource](const std::vector<std::string>& ids) {
      return allocate(resource, ids);
    };
    settings.handlers.prefer = [this, resource](const resource::Choice& choice) { return prefer(resource, choice); };
    plugin = std::make_unique<Plugin>(loop_, std::move(settings));
    check_directory();
  }
  return *plugin;
}

const Offer* KubeletOffers::find(const std::string& resource) const { return find_in(offers_, resource); }

Result<resource::Allocation> KubeletOffers::allocate(const std::string& resource, const std::vector<std::string>& ids) {
  settings_.refresh();  // what kubelet was told may be out of date
  const Offer* const offer = find(resource);
  Result<resource::Allocation> allocation =
      offer != nullptr ? resource::allocate(*offer, ids, catalog_.config().kube.policy)
                       : fail(std::errc::no_such_device, "allocate " + resource + ": it is not offered");
  (allocation ? allocated_ : refused_)[resource] += 1;
  is_written_ = false;
  if (allocation) {
    settings_.given(resource, ids);
    settings_.log("allocated resource=" + resource + " devices=" + join(ids, ","), false);
  } else {
    settings_.log("refused resource=" + resource + " error=" + quote(allocation.error().message), true);
  }
  return allocation;
}

Result<std::vector<std::string>> KubeletOffers::prefer(const std::string& resource,
                                                       const resource::Choice& choice) const {
  const Offer* const offer = find(resource);
  return offer != nullptr ? resource::prefer(*offer, choice, catalog_.inventory(), catalog_.config().kube.policy.spread)
                          : fail(std::errc::no_such_device, "prefer devices of " + resource + ": it is not offered");
}

void KubeletOffers::check_directory() {
  const config::KubeSettings& kube = catalog_.config().kube;
  sockets_->add(host_, kube.uses_registry ? kube.registry : kube.directory);
  for (const auto& [resource, plugin] : plugins_) {
    if (plugin) {
      plugin->check_directory(kernel::monotonic_now());
    }
  }
}

void KubeletOffers::work(std::uint64_t now) {
  if (now >= next_check_) {
    next_check_ = now + kCheckPause;
    check_directory();
  }
  for (const auto& [resource, plugin] : plugins_) {
    plugin->work(now);
    is_written_ = is_written_ && std::exchange(connected_[resource], plugin->is_connected()) == plugin->is_connected();
  }
}

std::uint64_t KubeletOffers::next_due() const {
  std::uint64_t due = next_check_;
  for (const auto& [resource, plugin] : plugins_) {
    due = std::min(due, plugin->next_due());
  }
  return due;
}

void KubeletOffers::note_driver(resource::OfferStatus driver) {
  if (driver_ != driver) {
    driver_ = std::move(driver);
    is_written_ = false;
  }
}

void KubeletOffers::write_status() {
  if (std::exchange(is_written_, true)) {
    return;
  }
  journal::PluginStatus status{journal::own_program(host_, settings_.version), {}};
  for (const Offer& offer : offers_) {
    const auto plugin = plugins_.find(offer.resource);
    const bool is_connected = plugin != plugins_.end() && plugin->second->is_connected();
    status.resources.push_back({offer, is_connected, allocated_[offer.resource], refused_[offer.resource]});
  }
  if (driver_) {
    status.resources.push_back(*driver_);
  }
  const Result<void> written = journal::write_plugin_status(host_, status);
  if (!written && written.error().message != status_problem_) {
    settings_.log("no-status error=" + quote(written.error().message), true);
  }
  status_problem_ = written ? "" : written.error().message;
}

void KubeletOffers::write_status_again() {
  is_written_ = false;
  write_status();
}

std::size_t KubeletOffers::stop(const std::function<void()>& stopped) {
  for (const auto& [resource, plugin] : plugins_) {
    plugin->stop(stopped);
  }
  return plugins_.size();
}

}  // namespace hf::plugin
