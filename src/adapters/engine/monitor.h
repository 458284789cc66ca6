// Monitor: the process that an engine starts for each container: containerd-shim, or conmon of podman and CRI-O. Its
// command line identifies the container even when the engine is dead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::engine {

struct Monitor {
  enum class Kind : std::uint8_t { shim, conmon };

  Kind kind = Kind::shim;
  std::string id;          // of the container; of the pod, where a shim serves a whole pod
  std::string name_space;  // containerd's
  std::string name;        // conmon only
  std::string bundle;      // from conmon's arguments; a shim has it as working directory
  std::string runtime;     // conmon: the runtime's path
  bool systemd_cgroup = false;
};
std::optional<Monitor> parse_monitor(const std::vector<std::string>& arguments);

// options.json in a bundle of containerd: the runtime that the shim calls.
struct ShimOptions {
  std::string binary;
  std::string root;
  std::optional<bool> systemd_cgroup;
};
Result<ShimOptions> parse_shim_options(std::string_view json);

// config.v2.json: docker's record of a container.
struct DockerRecord {
  std::string name;
  std::string image;
  std::map<std::string, std::string> labels;  // also those of the image
  std::string image_id;                       // "sha256:…"
  std::string driver;                         // of its storage: "overlay2"
};
Result<DockerRecord> parse_docker_record(std::string_view json);

// The labels in the configuration of an image, which dockerd keeps below its data root.
Result<std::map<std::string, std::string>> parse_image_labels(std::string_view json);
// Where that is: absent where the record does not say.
std::optional<std::string> image_file_of(const DockerRecord& record, const std::string& data_root);

// The directory of dockerd's records: from its command line, else from its daemon.json, else the default.
std::string data_root_in(const std::vector<std::string>& dockerd, std::string_view daemon_json);

// "runc version 1.1.5\n…": the name and the version, absent where the text has none.
struct ParsedVersion {
  std::string name;
  std::string version;
};
std::optional<ParsedVersion> parse_version(std::string_view text);

}  // namespace hf::engine
