#include "core/notice/condition.h"

#include "core/base/text.h"

namespace hf::notice {
namespace {

constexpr std::size_t kMostNamed = 5;
constexpr std::size_t kLongest = 1024;  // bytes of a message

std::string describe(const ContainerState& it) {
  const std::string name = (it.pod && !it.pod->name_space.empty() ? it.pod->name_space + "/" : "") + it.title;
  if (!it.verdict.empty()) {
    return name + ": " + it.verdict;
  }
  return name + (it.devices.empty() ? " lacks devices" : " cannot use " + join(it.devices, ", "));
}

}  // namespace

std::string to_string(Status status) {
  switch (status) {
    case Status::yes: return "True";
    case Status::no: return "False";
    case Status::unknown: return "Unknown";
  }
  return "";
}

Condition condition_without_guard(const std::string& why) {
  return {Status::unknown, "GuardAbsent", printable(cut_to("holdfastd does not answer: " + why, kLongest))};
}

Condition condition_of(const std::string& why_blind, const std::vector<ContainerState>& lacking) {
  if (!why_blind.empty()) {
    return {Status::unknown, "GuardBlind", printable(cut_to("holdfastd watches nothing: " + why_blind, kLongest))};
  }
  if (lacking.empty()) {
    return {Status::yes, "DevicesAccessible", "every container can use the devices that it is owed"};
  }
  std::vector<std::string> named;
  for (const ContainerState& it : lacking) {
    if (named.size() < kMostNamed) {
      named.push_back(describe(it));
    }
  }
  const std::string count = lacking.size() == 1 ? "1 container lacks devices: "
                                                : std::to_string(lacking.size()) + " containers lack devices: ";
  const std::string rest =
      lacking.size() > kMostNamed ? "; and " + std::to_string(lacking.size() - kMostNamed) + " more" : "";
  return {Status::no, "DeviceLost", printable(cut_to(count + join(named, "; ") + rest, kLongest))};
}

}  // namespace hf::notice
