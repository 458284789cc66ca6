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

struct Condition {
  std::string_view fact;
  std::string_view operation;
  std::string_view value;
};

std::optional<Condition> parse_condition(std::string_view text) {
  const std::size_t begin = text.find_first_of("<>=!");
  const std::size_t end = text.find_first_not_of("<>=!", begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    return std::nullopt;
  }
  return Condition{trim(text.substr(0, begin)), text.substr(begin, end - begin), trim(text.substr(end))};
}

// NVIDIA's images name brand and arch too.
bool is_readable(const std::optional<Condition>& condition) {
  constexpr std::array<std::string_view, 4> kFacts = {"cuda", "driver", "brand", "arch"};
  constexpr std::array<std::string_view, 7> kOperations = {">=", "<=", ">", "<", "!=", "=", "=="};
  return condition && std::ranges::find(kFacts, condition->fact) != kFacts.end() &&
         std::ranges::find(kOperations, condition->operation) != kOperations.end();
}

// What cannot be read, or is about a fact that is not known here, cannot fail.
bool is_condition_met(std::string_view text, const HostDeviceFacts& facts) {
  const std::optional<Condition> condition = parse_condition(text);
  const auto fact = is_readable(condition) ? facts.find(std::string(condition->fact)) : facts.end();
  return fact == facts.end() || compares(fact->second, condition->operation, condition->value);
}

std::optional<std::string_view> first_unreadable(std::string_view requirement) {
  for (const std::string_view alternative : split(requirement, ' ')) {
    for (const std::string_view condition : split(trim(alternative), ',')) {
      if (!trim(condition).empty() && !is_readable(parse_condition(trim(condition)))) {
        return trim(condition);
      }
    }
  }
  return std::nullopt;
}

bool is_requirement(const std::string& variable) {
  return variable.starts_with("NVIDIA_REQUIRE_") && variable != "NVIDIA_REQUIRE_JETPACK";
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
    if (is_requirement(name) && !is_met(requirement, facts)) {
      return std::string(name).append("=").append(requirement);
    }
  }
  return std::nullopt;
}

std::vector<std::string> find_unreadable(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> unreadable;
  for (const auto& [name, requirement] : environment) {
    const std::optional<std::string_view> condition =
        is_requirement(name) ? first_unreadable(requirement) : std::nullopt;
    if (condition) {
      unreadable.push_back(name + ": " + quote(*condition) + " has no effect: expected a condition such as cuda>=12.4");
    }
  }
  return unreadable;
}

std::string cuda_of_driver(std::string_view version) {
  const auto release = parse_number<std::uint32_t>(version.substr(0, version.find('.')));
  const auto* const found = std::ranges::find_if(
      kBranches, [&release](const Branch& branch) { return release && *release >= branch.driver; });
  return found == kBranches.end() ? std::string() : found->cuda;
}

}  // namespace hf::nvidia
