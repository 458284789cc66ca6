// Keeper: the process an engine leaves beside each container: containerd's shim, or conmon of podman and CRI-O. Its
// command line tells whose container it is, also when the engine is dead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::engine {

struct Keeper {
  enum class Kind : std::uint8_t { shim, conmon };

  Kind kind = Kind::shim;
  std::string id;          // of the container; a shim may keep a whole pod and have the pod's
  std::string name_space;  // containerd's
  std::string name;        // conmon knows it
  std::string bundle;      // conmon has it in its words; a shim stands in it
  std::string runtime;     // conmon: the runtime's path
  bool systemd_cgroup = false;
};
std::optional<Keeper> parse_keeper(const std::vector<std::string>& words);  // of a command line

// options.json in a bundle of containerd: which runtime it calls.
struct ShimOptions {
  std::string binary;
  std::string root;
  std::optional<bool> systemd_cgroup;
};
Result<ShimOptions> parse_shim_options(std::string_view json);

// config.v2.json: what docker writes down about a container.
struct DockerRecord {
  std::string name;
  std::string image;
  std::map<std::string, std::string> labels;
};
Result<DockerRecord> parse_docker_record(std::string_view json);

// The folder dockerd keeps its records in: from its command line, else from its daemon.json, else the usual one.
std::string data_root_in(const std::vector<std::string>& dockerd, std::string_view daemon_json);

// "runc version 1.1.5\n…": the name and the number, absent where there is neither.
struct VersionWords {
  std::string name;
  std::string version;
};
std::optional<VersionWords> parse_version(std::string_view text);

}  // namespace hf::engine
