#include "core/container/entitlement/trust.h"

#include <algorithm>

#include <fnmatch.h>

namespace hf::container {
namespace {

bool fits(const std::string& glob, const std::string& text) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

bool fits(const std::optional<std::string>& glob, const std::string& text) { return !glob || fits(*glob, text); }

}  // namespace

std::string to_string(const TrustRule& rule) {
  return "trust: {namespace: " + rule.name_space + (rule.pod ? ", pod: " + *rule.pod : "") +
         (rule.container ? ", container: " + *rule.container : "") + "}";
}

const TrustRule* find_trust(const std::vector<TrustRule>& rules, const std::optional<Pod>& pod) {
  if (!pod || pod->uid.empty() || pod->name_space.empty() || !pod->is_named_by_cri) {
    return nullptr;
  }
  const auto found = std::ranges::find_if(rules, [&pod](const TrustRule& rule) {
    return fits(rule.name_space, pod->name_space) && fits(rule.pod, pod->name) && fits(rule.container, pod->container);
  });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace hf::container
