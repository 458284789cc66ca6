#include "core/resource/policy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"

namespace hf::resource {
namespace {

constexpr std::array<std::pair<DeviceListStrategy, std::string_view>, 4> kStrategies = {
    {{DeviceListStrategy::envvar, "envvar"},
     {DeviceListStrategy::volume_mounts, "volume-mounts"},
     {DeviceListStrategy::cdi_annotations, "cdi-annotations"},
     {DeviceListStrategy::cdi_cri, "cdi-cri"}}};

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool begins_and_ends_well(std::string_view text) {
  return !text.empty() && kLetters.find(text.front()) != std::string_view::npos &&
         kLetters.find(text.back()) != std::string_view::npos;
}

}  // namespace

std::string to_string(DeviceListStrategy strategy) {
  const auto* const found =
      std::ranges::find(kStrategies, strategy, &std::pair<DeviceListStrategy, std::string_view>::first);
  return found == kStrategies.end() ? "" : std::string(found->second);
}

Result<DeviceListStrategy> parse_device_list_strategy(std::string_view text) {
  const auto* const found =
      std::ranges::find(kStrategies, text, &std::pair<DeviceListStrategy, std::string_view>::second);
  if (found == kStrategies.end()) {
    return fail(std::errc::invalid_argument,
                quote(text) + " is no strategy; there are envvar, volume-mounts, cdi-annotations and cdi-cri");
  }
  return found->first;
}

std::string name_of(const Sharing& sharing, const Policy& policy) {
  return !sharing.rename.empty() ? sharing.rename
         : policy.renames_shared ? sharing.resource + ".shared"
                                 : sharing.resource;
}

Result<void> check_resource_name(std::string_view name) {
  constexpr std::size_t kLongestDomain = 253;
  constexpr std::size_t kLongestName = 63;
  const std::size_t slash = name.find('/');
  const std::string_view domain = name.substr(0, slash == std::string_view::npos ? 0 : slash);
  const std::string_view own = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const auto refuse = [name](const std::string& why) {
    return fail(std::errc::invalid_argument, "resource " + quote(name) + " " + why);
  };
  if (domain.empty()) {
    return refuse("has no domain: kubelet wants a name like nvidia.com/gpu");
  }
  if (domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") || name.starts_with("requests.")) {
    return refuse("has a name that Kubernetes keeps for itself");
  }
  const bool has_plain_domain =
      begins_and_ends_well(domain) && domain.size() <= kLongestDomain &&
      domain.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string_view::npos;
  const bool has_plain_name = begins_and_ends_well(own) && own.size() <= kLongestName &&
                              own.find_first_not_of(std::string(kLetters) + "-_.") == std::string_view::npos;
  return has_plain_domain && has_plain_name
             ? Result<void>()
             : refuse("is no name that Kubernetes accepts: letters, digits, '-', '_' and '.', after a domain");
}

}  // namespace hf::resource
