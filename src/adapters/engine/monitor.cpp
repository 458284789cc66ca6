#include "adapters/engine/monitor.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::engine {
namespace {

using document::Json;
using document::string_at;

// The argument after an option, or the text after its equals sign.
std::string value_of(const std::vector<std::string>& arguments, std::string_view option) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) {
      return arguments[i + 1];
    }
    if (arguments[i].starts_with(option) && arguments[i].size() > option.size() && arguments[i][option.size()] == '=') {
      return arguments[i].substr(option.size() + 1);
    }
  }
  return {};
}

bool has_flag(const std::vector<std::string>& arguments, std::string_view option) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == option) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Monitor> parse_monitor(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return std::nullopt;
  }
  const std::string_view program = base_name(arguments[0]);
  Monitor monitor;
  if (program.starts_with("containerd-shim")) {
    monitor.kind = Monitor::Kind::shim;
    monitor.id = value_of(arguments, "-id");
    if (monitor.id.empty()) {  // containerd's first shim
      monitor.id = base_name(value_of(arguments, "-workdir"));
    }
    monitor.name_space = value_of(arguments, "-namespace");
    return monitor;
  }
  if (program == "conmon") {
    monitor.kind = Monitor::Kind::conmon;
    monitor.id = value_of(arguments, "-c");
    monitor.name = value_of(arguments, "-n");
    monitor.bundle = value_of(arguments, "-b");
    monitor.runtime = value_of(arguments, "-r");
    monitor.systemd_cgroup = has_flag(arguments, "-s") || has_flag(arguments, "--systemd-cgroup");
    return monitor;
  }
  return std::nullopt;
}

Result<ShimOptions> parse_shim_options(std::string_view json) {
  const Json options = TRY(document::parse_object(json, "options.json"));
  return ShimOptions{string_at(options, "binary_name").value_or(""), string_at(options, "root").value_or(""),
                     document::bool_at(options, "systemd_cgroup")};
}

Result<DockerRecord> parse_docker_record(std::string_view json) {
  const Json container = TRY(document::parse_object(json, "config.v2.json"));
  const Json& config = document::object_at(container, "Config");
  DockerRecord record;
  const std::string name = string_at(container, "Name").value_or("");
  record.name = name.starts_with('/') ? name.substr(1) : name;
  record.image = string_at(config, "Image").value_or("");
  record.labels = document::string_map_at(config, "Labels");
  record.image_id = string_at(container, "Image").value_or("");
  record.driver = string_at(container, "Driver").value_or("");
  return record;
}

Result<std::map<std::string, std::string>> parse_image_labels(std::string_view json) {
  const Json image = TRY(document::parse_object(json, "an image's configuration"));
  return document::string_map_at(document::object_at(image, "config"), "Labels");
}

std::optional<std::string> image_file_of(const DockerRecord& record, const std::string& data_root) {
  constexpr std::string_view kDigest = "sha256:";
  const bool is_plain = record.driver.find('/') == std::string::npos && record.image_id.find('/') == std::string::npos;
  if (!record.image_id.starts_with(kDigest) || record.driver.empty() || !is_plain) {
    return std::nullopt;
  }
  return data_root + "/image/" + record.driver + "/imagedb/content/sha256/" + record.image_id.substr(kDigest.size());
}

std::string data_root_in(const std::vector<std::string>& dockerd, std::string_view daemon_json) {
  for (const char* option : {"--data-root", "-g", "--graph"}) {
    if (std::string root = value_of(dockerd, option); !root.empty()) {
      return root;
    }
  }
  const Result<Json> settings = document::parse_json(daemon_json);
  const std::string root = settings ? string_at(*settings, "data-root").value_or("") : "";
  return root.empty() ? "/var/lib/docker" : root;
}

std::optional<ParsedVersion> parse_version(std::string_view text) {
  // nvidia-container-runtime prints its own version first, and then the output of the runtime that it calls.
  std::optional<ParsedVersion> found;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    const bool has_version =
        fields.size() >= 3 && fields[1] == "version" && (fields[0] == "runc" || fields[0] == "crun");
    if (has_version) {
      found = ParsedVersion{std::string(fields[0]), std::string(fields[2])};
    }
  }
  return found;
}

}  // namespace hf::engine
