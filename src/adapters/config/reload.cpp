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
  return changed_of({{"web", running.web == read.web},
                     {"journal", running.journal == read.journal},
                     {"kube.root_dir", running.kube.root_dir == read.kube.root_dir}});
}

std::vector<std::string> waits_for_restart_of_plugin(const Config& running, const Config& read) {
  const KubeSettings& now = running.kube;
  const KubeSettings& then = read.kube;
  return changed_of(
      {{"kube.root_dir", now.root_dir == then.root_dir},
       {"kube.directory", now.directory == then.directory},
       {"kube.registry", now.registry == then.registry},
       {"kube.registration", now.uses_registry == then.uses_registry},
       {"kube.api", now.api == then.api},
       {"kube.dra", now.dra == then.dra},
       {"kube.device_plugin", now.serves_device_plugin == then.serves_device_plugin},
       {"web.socket", running.web.socket == read.web.socket},
       {"kube.xids", now.watches_errors == then.watches_errors && now.ignored_xids == then.ignored_xids}});
}

}  // namespace hf::config
