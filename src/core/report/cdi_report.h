// CdiReport: what `holdfast cdi` lists, finds wrong and resolves, as text and as JSON (docs/JSON.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/report/finding.h"

namespace hf::report {

struct CdiList {
  struct Device {
    std::string name;     // "nvidia.com/gpu=0"
    std::string file;     // of the spec
    std::string version;  // the spec's
    std::string state;    // "ok", "hidden" by a directory of higher priority, "conflict" within its directory
    std::size_t nodes = 0;
    std::size_t mounts = 0;
    std::size_t hooks = 0;
  };
  struct Broken {
    std::string file;
    std::string why;
  };

  std::vector<Device> devices;
  std::vector<Broken> broken;
};

struct CdiCheck {
  std::size_t specs = 0;
  std::size_t devices = 0;
  std::vector<Finding> findings;  // the worst first

  [[nodiscard]] bool is_well() const;  // there are only notes
};

struct CdiResolved {
  std::vector<std::string> names;
  std::string edits;  // JSON in CDI's fields
};

}  // namespace hf::report
