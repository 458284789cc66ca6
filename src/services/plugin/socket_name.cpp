#include "services/plugin/socket_name.h"

#include <algorithm>
#include <random>

#include "adapters/kube/cpu_checkpoint.h"

namespace hf::plugin {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kRandomDigits = 8;
constexpr std::string_view kEnd = ".sock";

}  // namespace

// Sockets have short paths: the name of a resource may be longer.
std::string socket_prefix(std::string_view resource) {
  constexpr std::size_t kLongest = 30;
  std::string name(resource.substr(0, kLongest));
  std::ranges::replace(name, '/', '_');
  if (resource.size() > kLongest) {
    name += "~" + std::to_string(kube::fnv1a(resource));
  }
  return "holdfast-" + name + "-";
}

std::string random_suffix() {
  std::random_device random;
  std::string suffix;
  for (std::size_t i = 0; i < kRandomDigits; ++i) {
    suffix += kDigits[random() % kDigits.size()];
  }
  return suffix.append(kEnd);
}

bool is_socket_of(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix) || !name.ends_with(kEnd) ||
      name.size() != prefix.size() + kRandomDigits + kEnd.size()) {
    return false;
  }
  return name.substr(prefix.size(), kRandomDigits).find_first_not_of(kDigits) == std::string_view::npos;
}

}  // namespace hf::plugin
