#include "services/plugin/features_file.h"

#include <utility>

#include "core/base/text.h"
#include "core/resource/features.h"
#include "kernel/files/file.h"

namespace hf::plugin {
namespace {

Result<void> replace(const kernel::Host& host, const std::string& path, const std::string& text) {
  const std::string file = kernel::below_root(path);
  if (text.empty()) {
    return kernel::remove_file(host.root.get(), file);
  }
  return kernel::replace_file(host.root.get(), file, {text});
}

}  // namespace

void FeaturesFile::refresh(const config::KubeSettings& settings, const device::Inventory& inventory) {
  if (!path_.empty() && path_ != settings.features) {
    write(std::exchange(path_, ""), "");
  }
  if (settings.features.empty()) {
    return;
  }
  path_ = settings.features;
  const std::string text = resource::render_features(resource::labels_of(inventory, settings.policy));
  if (kernel::read_start(host_.root.get(), kernel::below_root(path_), text.size() + 1).value_or("") != text) {
    write(path_, text);
  }
}

void FeaturesFile::write(const std::string& path, const std::string& text) {
  const Result<void> written = replace(host_, path, text);
  const std::string problem = written ? "" : written.error().message;
  if (written) {
    log_("features file=" + path + (text.empty() ? " removed" : ""), false);
  } else if (problem != last_problem_) {
    log_("no-features file=" + path + " error=" + quote(problem), true);
  }
  last_problem_ = problem;
}

}  // namespace hf::plugin
