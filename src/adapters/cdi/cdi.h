// Cdi: the specs of the Container Device Interface on this node, and what a device's name in them stands for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/device.h"
#include "kernel/host.h"

namespace hf::cdi {

struct SpecNode {
  std::string path;       // in the container
  std::string host_path;  // "" where it is the same
  std::optional<device::Kind> kind;
  std::optional<std::uint32_t> major;
  std::optional<std::uint32_t> minor;
  std::string permissions;

  [[nodiscard]] const std::string& on_host() const { return host_path.empty() ? path : host_path; }
};

struct Edits {
  std::vector<SpecNode> nodes;
  std::vector<std::string> mounts;  // files of the host
};

struct Spec {
  std::string file;
  std::string kind;  // "nvidia.com/gpu"
  std::string version;
  Edits all;                             // for every device of the spec
  std::map<std::string, Edits> devices;  // by name
};

// YAML, of which JSON is a part.
Result<Spec> parse_spec(std::string_view text, const std::string& file);

struct BrokenSpec {
  std::string file;
  std::string why;
};

// All specs there are, those of the weaker folder first: /etc/cdi, then /var/run/cdi.
struct Registry {
  std::vector<Spec> specs;
  std::vector<BrokenSpec> broken;
  struct Shadow {
    std::string device;        // "nvidia.com/gpu=0"
    std::string by;            // the file that counts
    std::string hidden;        // the file that does not
    bool is_conflict = false;  // both in one folder: neither counts
  };
  std::vector<Shadow> shadows;

  // The edits of a fully qualified name; absent where no spec, or more than one of the same folder, has it.
  [[nodiscard]] std::optional<Edits> resolve(const std::string& name) const;
  [[nodiscard]] bool is_effective(const Spec& spec, const std::string& device) const;
};
Registry read_registry(const kernel::Host& host);

}  // namespace hf::cdi
