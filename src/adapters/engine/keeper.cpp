#include "adapters/engine/keeper.h"

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

// The word after an option, or behind its equals sign.
std::string value_of(const std::vector<std::string>& words, std::string_view option) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) {
      return words[i + 1];
    }
    if (words[i].starts_with(option) && words[i].size() > option.size() && words[i][option.size()] == '=') {
      return words[i].substr(option.size() + 1);
    }
  }
  return {};
}

bool has(const std::vector<std::string>& words, std::string_view option) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == option) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Keeper> parse_keeper(const std::vector<std::string>& words) {
  if (words.empty()) {
    return std::nullopt;
  }
  const std::string_view program = name_in(words[0]);
  Keeper keeper;
  if (program.starts_with("containerd-shim")) {
    keeper.kind = Keeper::Kind::shim;
    keeper.id = value_of(words, "-id");
    if (keeper.id.empty()) {  // containerd's first shim
      keeper.id = name_in(value_of(words, "-workdir"));
    }
    keeper.name_space = value_of(words, "-namespace");
    return keeper;
  }
  if (program == "conmon") {
    keeper.kind = Keeper::Kind::conmon;
    keeper.id = value_of(words, "-c");
    keeper.name = value_of(words, "-n");
    keeper.bundle = value_of(words, "-b");
    keeper.runtime = value_of(words, "-r");
    keeper.systemd_cgroup = has(words, "-s") || has(words, "--systemd-cgroup");
    return keeper;
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

std::optional<VersionWords> parse_version(std::string_view text) {
  // nvidia-container-runtime prints its own version first and lets the runtime below it speak then.
  std::optional<VersionWords> found;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = split_words(line);
    const bool names_it = words.size() >= 3 && words[1] == "version" && (words[0] == "runc" || words[0] == "crun");
    if (names_it) {
      found = VersionWords{std::string(words[0]), std::string(words[2])};
    }
  }
  return found;
}

}  // namespace hf::engine
