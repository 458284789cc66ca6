#include "core/report/blame.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hf::report {
namespace {

constexpr std::array<std::pair<Action, const char*>, 10> kActions = {{{Action::none, "none"},
                                                                      {Action::observed, "observed"},
                                                                      {Action::healed, "healed"},
                                                                      {Action::failed, "failed"},
                                                                      {Action::waits, "waits"},
                                                                      {Action::hardened, "hardened"},
                                                                      {Action::locked, "locked"},
                                                                      {Action::recreated, "mended"},
                                                                      {Action::shielded, "shielded"},
                                                                      {Action::completed, "completed"}}};

}  // namespace

std::string to_string(Action action) {
  for (const auto& [known, name] : kActions) {
    if (known == action) {
      return name;
    }
  }
  return "unknown";
}

std::optional<Action> parse_action(std::string_view text) {
  const auto* const found = std::ranges::find_if(kActions, [text](const auto& entry) { return entry.second == text; });
  return found == kActions.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace hf::report
