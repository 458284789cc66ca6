#include "core/container/guard/policy.h"

#include <algorithm>
#include <array>

#include <fnmatch.h>

#include "core/base/text.h"

namespace hf::container {
namespace {

constexpr std::array<std::pair<Mode, const char*>, 4> kNames = {
    {{Mode::observe, "observe"}, {Mode::harden, "harden"}, {Mode::heal, "heal"}, {Mode::lock, "lock"}}};

constexpr std::array<std::pair<ShieldUse, const char*>, 3> kShieldUses = {
    {{ShieldUse::off, "off"}, {ShieldUse::automatic, "auto"}, {ShieldUse::with_root, "root"}}};

bool fits(const std::string& glob, const std::string& text) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

bool fits(const std::optional<std::string>& glob, const std::string& text) { return !glob || fits(*glob, text); }

bool fits_name(const std::string& glob, const Container& container) {
  return (container.name && fits(glob, *container.name)) || fits(glob, title_of(container)) ||
         fits(glob, container.id.value);
}

bool fits_labels(const std::map<std::string, std::string>& wanted, const Container& container) {
  return std::ranges::all_of(wanted, [&container](const auto& entry) {
    const auto label = container.labels.find(entry.first);
    return label != container.labels.end() && fits(entry.second, label->second);
  });
}

bool fits(const Match& match, const Container& container, const std::string& device_class) {
  return fits(match.device_class, device_class) && fits(match.engine, container.engine.value_or("")) &&
         fits(match.name_space, name_space_of(container)) &&
         (!match.container || fits_name(*match.container, container)) && fits_labels(match.labels, container);
}

}  // namespace

std::string to_string(Mode mode) {
  const auto* found = std::ranges::find(kNames, mode, &std::pair<Mode, const char*>::first);
  return found->second;
}

Result<Mode> parse_mode(std::string_view text) {
  for (const auto& [mode, name] : kNames) {
    if (text == name) {
      return mode;
    }
  }
  return fail(std::errc::invalid_argument, "mode " + quote(text) + ": want observe, harden, heal or lock");
}

std::string to_string(ShieldUse use) {
  const auto* found = std::ranges::find(kShieldUses, use, &std::pair<ShieldUse, const char*>::first);
  return found->second;
}

Result<ShieldUse> parse_shield_use(std::string_view text) {
  for (const auto& [use, name] : kShieldUses) {
    if (text == name) {
      return use;
    }
  }
  return fail(std::errc::invalid_argument, "shield " + quote(text) + ": want auto, off or root");
}

Mode mode_for(const Policy& policy, const Container& container, const std::string& device_class) {
  const auto rule = std::ranges::find_if(
      policy.rules, [&](const PolicyRule& entry) { return fits(entry.match, container, device_class); });
  return rule == policy.rules.end() ? policy.mode : rule->mode;
}

}  // namespace hf::container
