#include "adapters/nvidia/requirement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/text.h"

namespace hf::nvidia {
namespace {

// The first driver branch that runs each CUDA version, newest first.
struct Branch {
  std::uint32_t driver;
  const char* cuda;
};
constexpr std::array<Branch, 24> kBranches = {
    {{590, "13.1"}, {580, "13.0"}, {575, "12.9"}, {570, "12.8"}, {565, "12.7"}, {560, "12.6"},
     {555, "12.5"}, {550, "12.4"}, {545, "12.3"}, {535, "12.2"}, {530, "12.1"}, {525, "12.0"},
     {520, "11.8"}, {515, "11.7"}, {510, "11.6"}, {495, "11.5"}, {470, "11.4"}, {465, "11.3"},
     {460, "11.2"}, {455, "11.1"}, {450, "11.0"}, {440, "10.2"}, {418, "10.1"}, {410, "10.0"}}};

std::vector<std::uint32_t> numbers_of(std::string_view version) {
  std::vector<std::uint32_t> numbers;
  for (const std::string_view part : split(version, '.')) {
    numbers.push_back(parse_number<std::uint32_t>(part).value_or(0));
  }
  while (!numbers.empty() && numbers.back() == 0) {  // 12 is 12.0
    numbers.pop_back();
  }
  return numbers;
}

bool compares(std::string_view fact, std::string_view operation, std::string_view wanted) {
  const auto order = numbers_of(fact) <=> numbers_of(wanted);
  return operation == ">="   ? order >= 0
         : operation == "<=" ? order <= 0
         : operation == ">"  ? order > 0
         : operation == "<"  ? order < 0
         : operation == "!=" ? order != 0
                             : order == 0;
}

bool is_condition_met(std::string_view condition, const HostDeviceFacts& facts) {
  const std::size_t begin = condition.find_first_of("<>=!");
  const std::size_t end = condition.find_first_not_of("<>=!", begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    return true;  // not a condition: nothing can fail
  }
  const auto fact = facts.find(std::string(trim(condition.substr(0, begin))));
  return fact == facts.end() ||
         compares(fact->second, condition.substr(begin, end - begin), trim(condition.substr(end)));
}

}  // namespace

bool is_met(std::string_view requirement, const HostDeviceFacts& facts) {
  bool has_alternative = false;
  for (const std::string_view alternative : split(requirement, ' ')) {
    if (trim(alternative).empty()) {
      continue;
    }
    has_alternative = true;
    const std::vector<std::string_view> conditions = split(trim(alternative), ',');
    if (std::ranges::all_of(conditions,
                            [&facts](std::string_view condition) { return is_condition_met(condition, facts); })) {
      return true;
    }
  }
  return !has_alternative;
}

std::optional<std::string> find_unmet(const std::map<std::string, std::string>& environment,
                                      const HostDeviceFacts& facts) {
  const auto disabled = environment.find("NVIDIA_DISABLE_REQUIRE");
  constexpr std::array<std::string_view, 4> kYes = {"1", "true", "True", "TRUE"};
  if (disabled != environment.end() && std::ranges::find(kYes, disabled->second) != kYes.end()) {
    return std::nullopt;
  }
  for (const auto& [name, requirement] : environment) {
    const bool counts = name.starts_with("NVIDIA_REQUIRE_") && name != "NVIDIA_REQUIRE_JETPACK";
    if (counts && !is_met(requirement, facts)) {
      return std::string(name).append("=").append(requirement);
    }
  }
  return std::nullopt;
}

std::string cuda_of_driver(std::string_view version) {
  const auto release = parse_number<std::uint32_t>(version.substr(0, version.find('.')));
  const auto* const found = std::ranges::find_if(
      kBranches, [&release](const Branch& branch) { return release && *release >= branch.driver; });
  return found == kBranches.end() ? std::string() : found->cuda;
}

}  // namespace hf::nvidia
