// Spec: the parts of a bundle's config.json that matter for a container's devices and CPUs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/request.h"
#include "core/device/device.h"
#include "core/device/oci_rules.h"

namespace hf::oci {

struct SpecNode {
  std::string path;
  device::Device device;
  std::optional<std::uint32_t> mode = std::nullopt;  // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

struct Hook {
  std::string stage;  // "prestart"
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> environment = {};
  std::optional<int> timeout = std::nullopt;  // seconds
};

struct SpecMount {
  std::string destination;
  std::string source;
};

struct SpecCpu {
  cpu::CpuTime time;
  std::string cpus;  // "0-3"; "" where it is not confined
  std::string mems;  // the same of NUMA nodes
};

struct Spec {
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> environment;  // where a name occurs twice, the last value
  std::vector<SpecNode> nodes;
  device::OciRules rules;
  SpecCpu cpu;
  std::vector<Hook> hooks;
  std::vector<SpecMount> mounts;
  std::string cgroups_path;
  std::string root;                 // of its file system: an absolute path, or one relative to the bundle
  bool is_privileged = false;       // CAP_SYS_ADMIN in the bounding set
  bool may_create_nodes = false;    // CAP_MKNOD in the bounding set
  bool has_user_namespace = false;  // its root is another user of the host
};

// Fails where device nodes or rules are malformed, or where a key is written in another case. Other fields may have any
// value.
Result<Spec> parse_spec(std::string_view json);

// Reads only `root`, "" where there is none: a hook needs nothing else, and a spec is long.
Result<std::string> parse_root(std::string_view json);

std::string annotation_of(const Spec& spec, const std::string& key);    // "" where there is none
std::string environment_of(const Spec& spec, const std::string& name);  // "" where there is none

}  // namespace hf::oci
