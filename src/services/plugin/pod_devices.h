// PodDevices: which devices pods have: what kubelet has written down, and what it was given a moment ago.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/resource/cluster_device.h"
#include "core/resource/offer.h"
#include "core/resource/policy.h"
#include "host/evidence.h"
#include "kernel/files/host.h"

namespace hf::plugin {

class PodDevices {
 public:
  using Offers = std::vector<resource::Offer>;

  PodDevices(const kernel::Host& host, std::string kubelet) : host_(host), kubelet_(std::move(kubelet)) {}

  // Allocate gave these; kubelet writes it down later. Times are nanoseconds of CLOCK_MONOTONIC.
  void remember(const std::string& resource, const std::vector<std::string>& ids, std::uint64_t now);
  // What pods have by the device plugin: no claim may have it as well.
  resource::Taken given(const Offers& offers, std::uint64_t now);
  // What pods have by resource claims, as kubelet has it: the DRA driver may have been switched off, or have lost its
  // file. `known`: the claims that it knows, which need no device for themselves if an administrator's monitor has
  // them.
  [[nodiscard]] resource::Taken claimed(const Offers& offers, const resource::Policy& policy,
                                        const std::set<std::string>& known) const;
  // By the device plugin as kubelet knows them, by claims as CDI does.
  [[nodiscard]] std::set<std::string> ids_given_to(const std::string& pod) const;

 private:
  [[nodiscard]] bool is_alive(const std::string& pod) const;

  [[nodiscard]] host::Sources read_sources() const;

  const kernel::Host& host_;
  std::string kubelet_;  // its root directory
  struct Remembered {
    std::uint64_t at = 0;
    std::set<std::string> before;  // the pods that kubelet had written down for it until then
  };
  std::map<std::pair<std::string, std::string>, Remembered> remembered_;  // by resource and id
};

}  // namespace hf::plugin
