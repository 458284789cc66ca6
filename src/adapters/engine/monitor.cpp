#include "adapters/engine/monitor.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace hf::engine {
namespace {

using Json = nlohmann::json;

Result<Json> parse_object(std::string_view text, const char* what) {
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object()) {
    return fail(std::errc::invalid_argument, std::string("parse ") + what + ": not a JSON object");
  }
  return document;
}

std::string text_of(const Json& object, const char* key) {
  const auto entry = object.is_object() ? object.find(key) : object.end();
  return entry != object.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

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
  const Json document = TRY(parse_object(json, "options.json"));
  ShimOptions options{text_of(document, "binary_name"), text_of(document, "root"), std::nullopt};
  if (const auto systemd = document.find("systemd_cgroup"); systemd != document.end() && systemd->is_boolean()) {
    options.systemd_cgroup = systemd->get<bool>();
  }
  return options;
}

Result<DockerRecord> parse_docker_record(std::string_view json) {
  const Json document = TRY(parse_object(json, "config.v2.json"));
  DockerRecord record;
  const std::string name = text_of(document, "Name");
  record.name = name.starts_with('/') ? name.substr(1) : name;
  const auto config = document.find("Config");
  if (config == document.end() || !config->is_object()) {
    return record;
  }
  record.image = text_of(*config, "Image");
  if (const auto labels = config->find("Labels"); labels != config->end() && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) {
      record.labels[key] = value.is_string() ? value.get<std::string>() : std::string();
    }
  }
  return record;
}

std::string data_root_in(const std::vector<std::string>& dockerd, std::string_view daemon_json) {
  for (const char* option : {"--data-root", "-g", "--graph"}) {
    if (std::string root = value_of(dockerd, option); !root.empty()) {
      return root;
    }
  }
  const Json settings = Json::parse(daemon_json, nullptr, /*allow_exceptions=*/false);
  const std::string root = settings.is_object() ? text_of(settings, "data-root") : std::string();
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
