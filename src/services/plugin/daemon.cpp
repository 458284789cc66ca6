#include "services/plugin/daemon.h"

#include <algorithm>
#include <set>

#include <unistd.h>

#include "adapters/config/reload.h"
#include "adapters/journal/plugin_status.h"
#include "core/base/text.h"
#include "core/resource/health_log.h"
#include "kernel/files/clock.h"
#include "kernel/net/event_loop.h"
#include "kernel/process/signals.h"
#include "kernel/watch/host_changes.h"
#include "services/plugin/catalog.h"
#include "services/plugin/device_errors.h"
#include "services/plugin/dra/dra_driver.h"
#include "services/plugin/features_file.h"
#include "services/plugin/kubelet_offers.h"
#include "services/plugin/pod_devices.h"

namespace hf::plugin {
namespace {

using resource::Offer;
using resource::OfferedDevice;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kCheckPause = 30 * kSecond;  // between checks of all devices, whatever the events say
constexpr std::uint64_t kModulePause = 30 * kSecond;
constexpr std::uint64_t kStopLimit = 2 * kSecond;
constexpr std::uint32_t kWritten = 30;  // seconds, until an event whose time has come is written
constexpr const char* kSpecPending = "its CDI spec is being written";

// Everything that a CDI spec is made of, as far as offers show it.
std::string key_of(const Catalog& catalog) {
  std::string key;
  for (const std::vector<Offer>* offers : {&catalog.offers(), &catalog.cluster_offers()}) {
    for (const Offer& offer : *offers) {
      for (const OfferedDevice& device : offer.devices) {
        key += device.device + (device.is_healthy() ? " " : " not ") + join(device.nodes, " ") + "\n";
      }
    }
  }
  for (const device::Node& node : catalog.inventory().nodes) {
    key += node.path + (node.live ? " " + to_string(*node.live) : "") + "\n";
  }
  return key;
}

class Loop {
 public:
  Loop(const kernel::Host& host, const DaemonSettings& settings)
      : host_(host),
        settings_(settings),
        catalog_(host, settings.config),
        features_(host, settings.log),
        pods_(host, settings.config.kube.root_dir),
        kubelet_(host, loop_, catalog_,
                 {settings.version, [this] { refresh(); },
                  [this](const std::string& resource, const std::vector<std::string>& ids) {
                    pods_.remember(resource, ids, kernel::monotonic_now());
                  },
                  settings.log}),
        errors_(loop_, {settings.config.web.socket, settings.config.kube.api.spread + kWritten,
                        [this](const DeviceErrors::Error& error) { report(error); }, settings.record}),
        signals_(kernel::open_signals()),
        driver_thread_(host, settings.refresh_specs, [this](DriverThread::Report report) {
          loop_.post([this, report = std::move(report)] { adopt(report); });
        }) {}

  Result<void> run() {
    TRY(open());
    refresh();
    request(true);
    while (!stops_) {
      loop_.run_until(next_due());
      const std::uint64_t now = kernel::monotonic_now();
      if (now >= next_refresh_) {
        refresh();
        request(false);  // a spec may have been removed, and what failed before may work now
      }
      work(now);
    }
    settings_.notify("STOPPING=1");
    stop();
    return {};
  }

 private:
  Result<void> open() {
    TRY(loop_.watch(signals_.get(), [this] { act_on_signals(); }));
    devices_.emplace(TRY(kernel::DirectoryEvents::open()));
    TRY(loop_.watch(devices_->descriptor(), [this] { refresh_if(devices_->take()); }));
    TRY(kubelet_.open());
    if (Result<kernel::DriverEvents> drivers = kernel::DriverEvents::open()) {
      drivers_.emplace(*std::move(drivers));
      TRY(loop_.watch(drivers_->descriptor(), [this] { refresh_if(drivers_->take()); }));
    } else {
      settings_.log("no-events error=" + quote(drivers.error().message), true);
    }
    const config::KubeSettings& kube = catalog_.config().kube;
    open_dra(kube);
    if (const Result<void> opened = kube.watches_errors ? errors_.open(host_, kube.ignored_xids) : Result<void>();
        !opened) {
      settings_.log("no-errors-of-gpus error=" + quote(opened.error().message), true);
    }
    return {};
  }

  void open_dra(const config::KubeSettings& kube) {
    if (!kube.dra.is_enabled) {
      return;
    }
    claim_reader_.emplace(settings_.read_access);
    DraDriverSettings settings;
    settings.pool = {kube.dra.driver, settings_.node, ""};
    settings.directory = kube.dra.directory + "/" + kube.dra.driver;
    settings.registry = kube.registry;
    settings.api = settings_.api;
    settings.read_claim = [this](apiserver::Request request, ApiDone done) {
      claim_reader_->request(std::move(request), std::move(done));
    };
    settings.read_devices = [this] {
      refresh();
      return cluster_devices_;
    };
    settings.log = settings_.log;
    dra_.emplace(host_, loop_, std::move(settings));
  }

  void report(const DeviceErrors::Error& error) {
    // A pod that shares a GPU and keeps its own repair from succeeding does not take the GPU from the others.
    const std::set<std::string> given = error.pod.empty() ? std::set<std::string>() : pods_.ids_given_to(error.pod);
    for (const device::Unit& unit : catalog_.inventory().units) {
      if (error.is_about(unit)) {
        for (const std::string& key :
             resource::problem_keys(unit, catalog_.offers(), catalog_.cluster_offers(), given)) {
          health_.report(key, error.why, kernel::monotonic_now());
        }
        next_refresh_ = 0;
      }
    }
  }

  // ---- Devices ----

  void refresh_if(bool has_changed) {
    if (has_changed) {
      refresh();
    }
  }

  void refresh() {
    const std::uint64_t now = kernel::monotonic_now();
    next_refresh_ = std::min(now + kCheckPause, health_.next_recovery(now));
    // A pod whose directory is gone has given its devices back, and a claim that kubelet's file lacks.
    const std::string& kubelet = settings_.config.kube.root_dir;
    for (const std::string& directory : {std::string("/dev"), std::string("/dev/nvidia-caps"), std::string("/dev/dri"),
                                         std::string("/dev/infiniband"), kubelet, kubelet + "/pods"}) {
      devices_->add(host_, directory);
    }
    catalog_.refresh(health_.problems(now));
    if (catalog_.driver_key() != asked_key_ || key_of(catalog_) != requested_key_) {
      request(catalog_.driver_key() != asked_key_);
    }
    publish();
  }

  // One task at a time: refresh() after its report requests what was skipped.
  void request(bool asks_libraries) {
    if (std::exchange(is_requested_, true)) {
      return;
    }
    const std::uint64_t now = kernel::monotonic_now();
    const device::Node* const uvm = catalog_.inventory().find("/dev/nvidia-uvm");
    DriverThread::Task task;
    task.config = catalog_.config();
    task.asks_libraries = asks_libraries;
    task.loads_uvm = uvm != nullptr && !uvm->numbers() && now >= next_module_;
    next_module_ = task.loads_uvm ? now + kModulePause : next_module_;
    task.key = key_of(catalog_);
    asked_key_ = catalog_.driver_key();
    requested_key_ = task.key;
    driver_thread_.request(std::move(task));
  }

  void adopt(const DriverThread::Report& report) {
    is_requested_ = false;
    for (const std::string& problem : report.problems) {
      settings_.log("driver error=" + quote(problem), true);
    }
    if (report.has_asked) {
      catalog_.set_answer(report.answer);
    }
    spec_key_ = report.key;
    spec_problem_ = report.spec_problem;
    is_ready_ = true;
    refresh();
  }

  [[nodiscard]] bool uses_cdi() const {
    const std::set<resource::DeviceListStrategy>& strategies = catalog_.config().kube.policy.strategies;
    return strategies.contains(resource::DeviceListStrategy::cdi_cri) ||
           strategies.contains(resource::DeviceListStrategy::cdi_annotations);
  }

  [[nodiscard]] bool has_current_specs() const { return spec_key_ == key_of(catalog_) && !spec_problem_; }

  // A device whose name in CDI is not written yet cannot be given to a container.
  void hold_back(Offer& offer) const {
    const auto before = std::ranges::find(kubelet_.offers(), offer.resource, &Offer::resource);
    const bool is_current = has_current_specs();
    for (OfferedDevice& device : offer.devices) {
      const OfferedDevice* const known = before == kubelet_.offers().end() ? nullptr : before->find(device.id);
      const bool was_given = known != nullptr && known->is_healthy();
      if (device.is_healthy() && !is_current && !was_given) {
        device.problem = spec_problem_.value_or(kSpecPending);
      }
    }
  }

  void publish() {
    if (!is_ready_) {
      return;
    }
    publish_to_cluster();
    std::vector<Offer> offers = catalog_.config().kube.serves_device_plugin ? catalog_.offers() : std::vector<Offer>();
    hold_taken(offers, taken_by_claims(offers));
    if (uses_cdi()) {
      std::ranges::for_each(offers, [this](Offer& offer) { hold_back(offer); });
    }
    kubelet_.publish(std::move(offers));
    features_.refresh(catalog_.config().kube, catalog_.inventory());
    if (!is_announced_) {
      is_announced_ = true;
      settings_.notify("READY=1\nSTATUS=offering " + std::to_string(kubelet_.offers().size()) + " resources");
      settings_.log("ready resources=" + std::to_string(kubelet_.offers().size()), false);
    }
  }

  [[nodiscard]] resource::Taken taken_by_claims(const std::vector<Offer>& offers) {
    resource::Taken taken = dra_ ? dra_->taken() : resource::Taken();
    const std::set<std::string> known = dra_ ? dra_->claims() : std::set<std::string>();
    taken.merge(pods_.claimed(offers, catalog_.config().kube.policy, known));
    return taken;
  }

  // Containers get its devices by their names in CDI alone: while the specs are not current none can be given, but that
  // is no reason to tell the cluster that they are gone. Pods may have devices by a device plugin that is off now.
  void publish_to_cluster() {
    if (!dra_) {
      return;
    }
    const std::vector<Offer>& offers = catalog_.cluster_offers();
    for (const Offer& offer : offers) {
      const auto before = std::ranges::find(cluster_offers_, offer.resource, &Offer::resource);
      if (!catalog_.config().kube.serves_device_plugin) {
        log_changes(offer, before == cluster_offers_.end() ? nullptr : &*before, settings_.log);
      }
    }
    cluster_devices_ = resource::cluster_devices(catalog_.inventory(), offers, catalog_.config().kube.policy);
    const bool is_writing = spec_key_ != key_of(catalog_);
    for (resource::ClusterDevice& device : cluster_devices_) {
      device.problem = device.problem ? std::move(device.problem) : spec_problem_;
      device.waits_for = is_writing ? std::optional<std::string>(kSpecPending) : std::nullopt;
    }
    hold_taken(cluster_devices_, pods_.given(catalog_.offers(), kernel::monotonic_now()));
    cluster_offers_ = offers;
    dra_->publish(cluster_devices_);
  }

  void work(std::uint64_t now) {
    kubelet_.work(now);
    if (dra_) {
      dra_->work(now);
      kubelet_.note_driver(dra_->status());
    }
    errors_.work(now);
    kubelet_.write_status();
    show_life(now);
  }

  void show_life(std::uint64_t now) {
    if (now < next_heartbeat_) {
      return;
    }
    next_heartbeat_ = now + std::uint64_t(settings_.heartbeat.count()) * kMillisecond;
    settings_.notify("WATCHDOG=1");
    if (!journal::renew_run_file(host_, journal::kPluginStatusFile)) {
      kubelet_.write_status_again();
    }
  }

  [[nodiscard]] std::uint64_t next_due() const {
    const std::uint64_t due = std::min({next_refresh_, kubelet_.next_due(), errors_.next_due(), next_heartbeat_});
    return dra_ ? std::min(due, dra_->next_due()) : due;
  }

  // ---- Life ----

  void act_on_signals() {
    while (const std::optional<kernel::Signal> signal = kernel::read_signal(signals_)) {
      if (*signal == kernel::Signal::end) {
        stops_ = true;
        return;
      }
      settings_.notify("RELOADING=1");
      if (Result<config::Config> config = settings_.reload()) {
        if (const auto keys = config::waits_for_restart_of_plugin(settings_.config, *config); !keys.empty()) {
          settings_.log("config-waits-for-restart keys=" + join(keys, ","), true);
        }
        config->kube.dra = catalog_.config().kube.dra;  // sockets and slices have its names
        config->kube.serves_device_plugin = catalog_.config().kube.serves_device_plugin;
        config->kube.root_dir = catalog_.config().kube.root_dir;
        config->kube.directory = catalog_.config().kube.directory;
        config->kube.registry = catalog_.config().kube.registry;
        config->kube.uses_registry = catalog_.config().kube.uses_registry;
        catalog_.set_config(*config);
        settings_.log("config-read", false);
        refresh();
      } else {
        settings_.log("config-refused error=" + quote(config.error().message), true);
      }
      settings_.notify("READY=1");
    }
  }

  void stop() {
    std::size_t left = dra_ ? 1 : 0;
    const auto stopped = [&left] { --left; };
    if (dra_) {
      dra_->stop(stopped);
    }
    left += kubelet_.stop(stopped);
    const std::uint64_t end = kernel::monotonic_now() + kStopLimit;
    while (left > 0 && kernel::monotonic_now() < end) {
      loop_.run_until(end);
    }
    journal::remove_run_file(host_, journal::kPluginStatusFile);
    if (left > 0) {
      ::_exit(0);  // kubelet does not let go of a call
    }
  }

  const kernel::Host& host_;
  const DaemonSettings& settings_;
  kernel::EventLoop loop_;
  Catalog catalog_;
  FeaturesFile features_;
  PodDevices pods_;
  KubeletOffers kubelet_;
  resource::HealthLog health_;
  DeviceErrors errors_;
  kernel::Fd signals_;
  std::optional<kernel::DirectoryEvents> devices_;
  std::optional<kernel::DriverEvents> drivers_;
  std::vector<Offer> cluster_offers_;  // as the cluster was told
  std::vector<resource::ClusterDevice> cluster_devices_;
  std::optional<ClaimReader> claim_reader_;
  std::optional<DraDriver> dra_;
  std::string asked_key_;      // when the libraries were asked
  std::string requested_key_;  // of the offers when the specs were requested
  std::string spec_key_;       // of the offers that the specs were written for
  std::optional<std::string> spec_problem_;
  std::uint64_t next_refresh_ = 0;
  std::uint64_t next_module_ = 0;
  std::uint64_t next_heartbeat_ = 0;
  bool is_ready_ = false;      // libraries and specs were seen once
  bool is_requested_ = false;  // the driver thread works on it
  bool is_announced_ = false;
  bool stops_ = false;
  DriverThread driver_thread_;  // the last: its thread calls the loop
};

}  // namespace

Result<void> run_daemon(const kernel::Host& host, const DaemonSettings& settings) { return Loop(host, settings).run(); }

}  // namespace hf::plugin
