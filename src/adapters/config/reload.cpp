#include "adapters/config/reload.h"

#include <initializer_list>

namespace hf::config {
namespace {

struct Key {
  const char* name;
  bool is_same;
};

std::vector<std::string> changed_of(std::initializer_list<Key> keys) {
  std::vector<std::string> changed;
  for (const Key& key : keys) {
    if (!key.is_same) {
      changed.emplace_back(key.name);
    }
  }
  return changed;
}

}  // namespace

std::vector<std::string> waits_for_restart_of_guard(const Config& running, const Config& read) {
  return changed_of({{"web", running.web == read.web}, {"journal", running.journal == read.journal}});
}

std::vector<std::string> waits_for_restart_of_plugin(const Config& running, const Config& read) {
  const KubeSettings& now = running.kube;
  const KubeSettings& then = read.kube;
  return changed_of(
      {{"kube.api", now.api == then.api},
       {"kube.dra", now.dra == then.dra},
       {"kube.device_plugin", now.serves_device_plugin == then.serves_device_plugin},
       {"kube.xids", now.watches_errors == then.watches_errors && now.ignored_xids == then.ignored_xids}});
}

}  // namespace hf::config
