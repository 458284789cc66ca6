#include "services/plugin/dra/dra_driver.h"

#include <algorithm>
#include <random>
#include <utility>

#include <sys/stat.h>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"

namespace hf::plugin {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kHealthPause = 10 * kSecond;  // kubelet forgets what it has not heard of for 30 s
constexpr std::uint64_t kSocketPause = kSecond;

std::uint64_t inode_of(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::string endpoint_of(const DraDriverSettings& settings) { return settings.directory + "/dra.sock"; }

ClaimSettings claim_settings(const DraDriverSettings& settings) {
  return {settings.pool, settings.directory + "/claims.json", settings.read_devices, settings.log};
}

std::function<double()> random_part() {
  return [random = std::mt19937_64(std::random_device()())]() mutable {
    return std::uniform_real_distribution<double>(0, 1)(random);
  };
}

}  // namespace

Result<void> KeptSocket::keep() {
  if (listener_ && inode_of(path_) == inode_) {
    return {};
  }
  close();
  listener_.emplace(TRY(kernel::UnixListener::open(path_)));
  (void)::chmod(path_.c_str(), 0600);
  inode_ = inode_of(path_);
  return loop_.watch(listener_->fd().get(), [this] {
    while (Result<kernel::Fd> client = kernel::accept_one(listener_->fd().get())) {
      accept_(*std::move(client));
    }
  });
}

void KeptSocket::close() {
  if (listener_) {
    loop_.unwatch(listener_->fd().get());
    listener_.reset();
  }
}

DraDriver::DraDriver(const kernel::Host& host, kernel::EventLoop& loop, DraDriverSettings settings)
    : host_(host),
      settings_(std::move(settings)),
      calls_(loop, settings_.api),
      claim_calls_(loop, settings_.read_claim),
      slices_([this](apiserver::Request request, ApiDone done) { calls_.send(std::move(request), std::move(done)); },
              {settings_.pool, settings_.log, kernel::monotonic_now, random_part()}),
      claims_(host, claim_calls_, claim_settings(settings_)),
      rpc_(loop, settings_.pool.driver, endpoint_of(settings_),
           {[this](const std::vector<resource::ClaimName>& names, DraRpc::Prepared done) {
              claims_.prepare(names, std::move(done));
            },
            [this](const std::vector<resource::ClaimName>& names) { return claims_.unprepare(names); },
            [this](bool is_registered, const std::string& error) { take_registration(is_registered, error); }}),
      service_(loop, endpoint_of(settings_), [this](kernel::Fd client) { rpc_.accept(std::move(client)); }),
      registration_(loop, settings_.registry + "/" + settings_.pool.driver + "-reg.sock",
                    [this](kernel::Fd client) { rpc_.accept(std::move(client)); }) {}

void DraDriver::publish(const std::vector<resource::ClusterDevice>& devices) {
  if (devices_ == devices) {
    return;
  }
  const std::uint64_t now = kernel::monotonic_now();
  devices_ = devices;
  slices_.publish(published_of(devices));
  claims_.try_again();
  next_health_ = now;
}

void DraDriver::work(std::uint64_t now) {
  if (is_stopping_ || !devices_) {
    return;
  }
  if (now >= next_sockets_) {
    next_sockets_ = now + kSocketPause;
    keep_sockets();
  }
  if (now >= next_health_) {
    next_health_ = now + kHealthPause;
    rpc_.publish(*devices_, settings_.pool.node);
  }
  claims_.work(now);
  slices_.work();
}

std::uint64_t DraDriver::next_due() const {
  if (is_stopping_ || !devices_) {
    return kernel::EventLoop::kNever;
  }
  return std::min({next_sockets_, next_health_, claims_.next_due(), slices_.next_due()});
}

// The service first: kubelet calls it as soon as it has seen the registration. An instance that is being replaced still
// has both; they are free when it has ended.
void DraDriver::keep_sockets() {
  const Result<void> made = kernel::make_directories(host_.root.get(), kernel::below_root(settings_.directory));
  const bool was_served = service_.is_open();
  const Result<void> served = made ? service_.keep() : made;
  if (served && !was_served) {
    claims_.read();
  }
  const Result<void> shown = served ? registration_.keep() : served;
  if (!shown) {
    note(shown.error().message);
  }
}

void DraDriver::take_registration(bool is_registered, const std::string& error) {
  is_registered_ = is_registered;
  rpc_.note_registration();
  if (!is_registered) {
    return note("kubelet refuses it: " + error);
  }
  last_problem_.clear();
  settings_.log("registered driver=" + settings_.pool.driver, false);
  slices_.check_soon();
}

void DraDriver::note(const std::string& problem) {
  if (problem != last_problem_) {
    last_problem_ = problem;
    settings_.log("not-registered driver=" + settings_.pool.driver + " error=" + quote(problem), true);
  }
}

resource::Taken DraDriver::taken() {
  if (!service_.is_open()) {
    claims_.read();  // an instance that is being replaced still prepares claims
  }
  resource::Taken taken;
  for (const auto& [uid, claim] : claims_.prepared()) {
    for (const resource::PreparedDevice& device : claim.devices) {
      for (const resource::ClusterDevice& known : devices_.value_or(std::vector<resource::ClusterDevice>())) {
        if (known.published.name == device.device && !device.is_admin) {
          taken[known.nodes] = "the claim " + to_string(claim.name) + " has it";
        }
      }
    }
  }
  return taken;
}

std::set<std::string> DraDriver::claims() const {
  std::set<std::string> names;
  for (const auto& [uid, claim] : claims_.prepared()) {
    names.insert(to_string(claim.name));
  }
  return names;
}

resource::OfferStatus DraDriver::status() const {
  return {resource::offer_of(settings_.pool.driver, devices_.value_or(std::vector<resource::ClusterDevice>())),
          is_registered_ && !rpc_.is_abandoned(), claims_.counts().prepared, claims_.counts().refused};
}

void DraDriver::stop(std::function<void()> stopped) {
  is_stopping_ = true;
  registration_.close();
  service_.close();
  claims_.stop();
  rpc_.stop(std::move(stopped));
}

}  // namespace hf::plugin
