#include "core/resource/features.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <vector>

#include "core/base/text.h"

namespace hf::resource {
namespace {

using device::Unit;
using Units = std::vector<const Unit*>;

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr std::size_t kLongestValue = 63;  // Kubernetes: of a label's value

bool is_letter_or_digit(char character) { return std::isalnum(static_cast<unsigned char>(character)) != 0; }

// Kubernetes: letters, digits, "-", "_" and ".", with a letter or digit at both ends.
std::string as_value(std::string text) {
  std::ranges::replace_if(
      text, [](char character) { return !is_letter_or_digit(character) && character != '_' && character != '.'; }, '-');
  text.resize(std::min(text.size(), kLongestValue));
  while (!text.empty() && !is_letter_or_digit(text.back())) {
    text.pop_back();
  }
  const auto first = std::ranges::find_if(text, is_letter_or_digit);
  return {first, text.end()};
}

// By the major and minor number of the compute capability.
std::string family_of(unsigned major, unsigned minor) {
  switch (major) {
    case 3: return "kepler";
    case 5: return "maxwell";
    case 6: return "pascal";
    case 7: return minor < 5 ? "volta" : "turing";
    case 8: return minor < 9 ? "ampere" : "ada-lovelace";
    case 9: return "hopper";
    case 10:
    case 12: return "blackwell";
    default: return "undefined";
  }
}

// A host has one set of labels: they describe the model that it has most of.
Units most_common_model(const device::Inventory& inventory) {
  std::map<std::string, Units> by_model;
  for (const Unit& unit : inventory.units) {
    if (unit.device_class == "nvidia" && !unit.is_excluded) {
      by_model[unit.model].push_back(&unit);
    }
  }
  const auto most = std::ranges::max_element(
      by_model, [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  return most == by_model.end() ? Units() : most->second;
}

const Sharing* sharing_of(const Policy& policy, const std::string& resource) {
  const auto found = std::ranges::find(policy.sharing, resource, &Sharing::resource);
  return found == policy.sharing.end() ? nullptr : &*found;
}

// Equal devices that are offered as one resource.
struct Group {
  std::string resource;
  std::string product;
  std::size_t count = 0;
};

// "gpu.product", "gpu.count" and "gpu.replicas", or those of a MIG profile.
void add_group(Labels& labels, const Group& group, const Policy& policy) {
  const Sharing* const sharing = sharing_of(policy, group.resource);
  const bool keeps_name = sharing != nullptr && name_of(*sharing, policy) == group.resource;
  labels[group.resource + ".product"] = as_value(group.product + (keeps_name ? "-SHARED" : ""));
  labels[group.resource + ".count"] = std::to_string(group.count);
  labels[group.resource + ".replicas"] = std::to_string(sharing == nullptr ? 1 : sharing->replicas);
}

void add_driver(Labels& labels, const device::Inventory& inventory) {
  const device::DriverState* const state = inventory.state_of("nvidia");
  if (state == nullptr) {
    return;
  }
  const auto add = [&labels](const std::string& name, std::string_view value) {
    if (!value.empty()) {
      labels["nvidia.com/cuda." + name] = as_value(std::string(value));
    }
  };
  const std::vector<std::string_view> driver = split(std::string_view(state->version), '.');
  const auto part = [](const std::vector<std::string_view>& parts, std::size_t index) {
    return index < parts.size() ? parts[index] : std::string_view();
  };
  add("driver.major", part(driver, 0));
  add("driver.minor", part(driver, 1));
  add("driver.rev", part(driver, 2));
  add("driver-version.major", part(driver, 0));
  add("driver-version.minor", part(driver, 1));
  add("driver-version.revision", part(driver, 2));
  add("driver-version.full", state->version);
  const std::vector<std::string_view> cuda = split(std::string_view(state->cuda_version), '.');
  for (const char* name : {"runtime.", "runtime-version."}) {
    add(std::string(name) + "major", part(cuda, 0));
    add(std::string(name) + "minor", part(cuda, 1));
  }
  add("runtime-version.full", state->cuda_version);
}

void add_gpu(Labels& labels, const Units& units, const Policy& policy) {
  const Unit& first = *units.front();
  add_group(labels, {kGpu, first.model, units.size()}, policy);
  if (first.memory_bytes) {
    labels["nvidia.com/gpu.memory"] = std::to_string(*first.memory_bytes >> 20U);
  }
  const std::vector<std::string_view> compute = split(std::string_view(first.compute_capability), '.');
  const std::optional<unsigned> major = parse_number<unsigned>(compute.front());
  const std::optional<unsigned> minor = compute.size() == 2 ? parse_number<unsigned>(compute[1]) : std::nullopt;
  if (major && minor) {
    labels["nvidia.com/gpu.family"] = family_of(*major, *minor);
    labels["nvidia.com/gpu.compute.major"] = std::to_string(*major);
    labels["nvidia.com/gpu.compute.minor"] = std::to_string(*minor);
  }
}

// "nvidia.com/gpu" stands for MIG devices of one profile. Anything else is not valid, and counts as none.
void add_single(Labels& labels, const Units& units, const Policy& policy) {
  std::set<std::string> profiles;
  std::size_t count = 0;
  for (const Unit* const unit : units) {
    count += unit->mig.size();
    for (const device::MigDevice& mig : unit->mig) {
      profiles.insert(mig.profile);
    }
  }
  const bool is_valid = profiles.size() == 1 && std::ranges::all_of(units, [](const Unit* unit) {
                          return unit->mig_enabled && !unit->mig.empty();
                        });
  if (is_valid) {
    add_group(labels, {kGpu, units.front()->model + "-MIG-" + *profiles.begin(), count}, policy);
    labels.erase("nvidia.com/gpu.memory");  // it is that of a whole GPU
    return;
  }
  labels["nvidia.com/gpu.product"] = as_value(units.front()->model + "-MIG-INVALID");
  for (const char* name : {"count", "replicas", "memory"}) {
    labels[std::string(kGpu) + "." + name] = "0";
  }
}

void add_mixed(Labels& labels, const Units& units, const Policy& policy) {
  std::map<std::string, std::size_t> counts;
  for (const Unit* const unit : units) {
    for (const device::MigDevice& mig : unit->mig) {
      ++counts[mig.profile];
    }
  }
  for (const auto& [profile, count] : counts) {
    std::string resource = "nvidia.com/mig-" + profile;
    std::ranges::replace(resource, '+', '.');
    add_group(labels, {resource, units.front()->model + "-MIG-" + profile, count}, policy);
  }
}

}  // namespace

Labels labels_of(const device::Inventory& inventory, const Policy& policy) {
  const Units units = most_common_model(inventory);
  Labels labels;
  if (units.empty()) {
    return labels;
  }
  add_driver(labels, inventory);
  add_gpu(labels, units, policy);
  const bool is_answered = std::ranges::any_of(units, [](const Unit* unit) { return unit->memory_bytes.has_value(); });
  if (is_answered) {
    const bool is_capable = std::ranges::any_of(units, &Unit::is_mig_capable);
    labels["nvidia.com/mig.capable"] = is_capable ? "true" : "false";
  }
  labels["nvidia.com/mps.capable"] = "false";
  if (policy.mig == MigStrategy::none) {
    return labels;
  }
  labels["nvidia.com/mig.strategy"] = policy.mig == MigStrategy::single ? "single" : "mixed";
  if (policy.mig == MigStrategy::mixed) {
    add_mixed(labels, units, policy);
  } else if (std::ranges::any_of(units, &Unit::mig_enabled)) {
    add_single(labels, units, policy);
  }
  return labels;
}

std::string render_features(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += name + "=" + value + "\n";
  }
  return text;
}

}  // namespace hf::resource
