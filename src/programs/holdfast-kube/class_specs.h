// ClassSpecs: the CDI specs of holdfast-kube, one for each device class that is offered by CDI names.
#pragma once

#include <map>
#include <string>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "kernel/files/host.h"
#include "services/specs/fresh.h"

namespace hf::programs {

class ClassSpecs {
 public:
  // The hook is holdfast-runtime: where the config says, beside this program, or where it is installed.
  explicit ClassSpecs(const kernel::Host& host);

  Result<void> refresh(const config::Config& config);

 private:
  // A file that holdfastd keeps current is not written twice.
  Result<void> refresh(config::Config config, const std::string& device_class);

  const kernel::Host& host_;
  std::string hook_;
  std::map<std::string, specs::FreshSpec> specs_;
};

}  // namespace hf::programs
