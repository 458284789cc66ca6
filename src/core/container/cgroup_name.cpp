#include "core/container/cgroup_name.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"

namespace hf::container {
namespace {

constexpr std::size_t kIdLength = 64;
constexpr std::string_view kScope = ".scope";

bool is_id(std::string_view text) {
  return text.size() == kIdLength && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Maps the prefix that an engine puts before the id, in scopes and in directories, to the engine's name.
std::string engine_of(std::string_view prefix) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEngines = {{{"docker", "docker"},
                                                                                      {"cri-containerd", "containerd"},
                                                                                      {"nerdctl", "containerd"},
                                                                                      {"crio", "cri-o"},
                                                                                      {"libpod", "podman"},
                                                                                      {"crun", "crun"}}};
  const auto* const found = std::ranges::find(kEngines, prefix, &std::pair<std::string_view, std::string_view>::first);
  return found == kEngines.end() ? "" : std::string(found->second);
}

// "kubepods-burstable-pod1234_5678.slice" or "pod1234-5678"
std::optional<std::string> pod_uid_of(std::string_view part) {
  const bool is_slice = part.find("kubepods") != std::string_view::npos && part.ends_with(".slice");
  if (is_slice) {
    part.remove_suffix(std::string_view(".slice").size());
    const std::size_t pod = part.rfind("-pod");
    if (pod == std::string_view::npos) {
      return std::nullopt;
    }
    std::string uid(part.substr(pod + 4));
    std::ranges::replace(uid, '_', '-');
    return uid.empty() ? std::nullopt : std::optional(uid);
  }
  const bool is_directory = part.starts_with("pod") && part.size() > 3;
  return is_directory ? std::optional(std::string(part.substr(3))) : std::nullopt;
}

// Recognises the directory of a container by its id, or by the naming scheme of LXC.
std::optional<ParsedCgroupName> parse_part(std::string_view part, std::string_view parent) {
  ParsedCgroupName name;
  std::string_view stem = part;
  if (part.ends_with(kScope)) {
    name.driver = CgroupDriver::systemd;
    name.scope = part;
    stem.remove_suffix(kScope.size());
  }
  if (stem.starts_with("lxc.payload.") && stem.size() > 12) {
    return ParsedCgroupName{std::string(stem.substr(12)), "lxc", {}, name.driver, name.scope, {}};
  }
  if ((parent == "lxc.payload" || parent == "lxc") && !stem.empty()) {
    return ParsedCgroupName{std::string(stem), "lxc", {}, name.driver, name.scope, {}};
  }
  if (stem.size() < kIdLength || !is_id(stem.substr(stem.size() - kIdLength))) {
    return std::nullopt;
  }
  name.id = stem.substr(stem.size() - kIdLength);
  std::string_view prefix = stem.substr(0, stem.size() - kIdLength);
  if (prefix.empty()) {
    name.engine = engine_of(parent);
    return name;
  }
  if (!prefix.ends_with('-') && !prefix.ends_with(':')) {
    return std::nullopt;
  }
  prefix.remove_suffix(1);
  if (prefix.ends_with("conmon")) {
    return std::nullopt;  // the monitor process of a container has a cgroup of its own
  }
  name.engine = engine_of(prefix);
  return name;
}

// systemd places "a-b.slice" in "a.slice".
std::string path_of_slice(std::string_view slice) {
  constexpr std::string_view kSuffix = ".slice";
  if (slice == "-.slice" || !slice.ends_with(kSuffix)) {
    return "";
  }
  const std::string_view stem = slice.substr(0, slice.size() - kSuffix.size());
  std::string path;
  for (std::size_t dash = stem.find('-');; dash = stem.find('-', dash + 1)) {
    path += "/" + std::string(stem.substr(0, dash)) + std::string(kSuffix);
    if (dash == std::string_view::npos) {
      return path;
    }
  }
}

}  // namespace

std::string cgroup_named_by(std::string_view cgroups_path) {
  if (cgroups_path.starts_with('/')) {
    const Result<CgroupPath> path = parse_cgroup_path(cgroups_path);
    return path ? path->text : "";
  }
  const std::vector<std::string_view> parts = split(cgroups_path, ':');
  if (parts.size() != 3 || parts[2].empty()) {
    return "";
  }
  const std::string slice = path_of_slice(parts[0].empty() ? "system.slice" : parts[0]);
  const std::string unit = (parts[1].empty() ? "" : std::string(parts[1]) + "-") + std::string(parts[2]) + ".scope";
  return slice + "/" + unit;
}

std::string cgroup_of_parent(std::string_view parent) {
  const bool is_slice = parent.ends_with(".slice") && parent.find('/') == std::string_view::npos;
  return is_slice ? path_of_slice(parent) : parent.starts_with('/') ? cgroup_named_by(parent) : std::string();
}

std::optional<ParsedCgroupName> parse_cgroup_name(std::string_view path) {
  std::optional<ParsedCgroupName> found;
  std::string so_far;
  std::string_view parent;
  std::string pod_uid;
  bool below_kubepods = false;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty()) {
      continue;
    }
    so_far += "/" + std::string(part);
    below_kubepods = below_kubepods || part.find("kubepods") != std::string_view::npos;
    if (const std::optional<std::string> uid = below_kubepods ? pod_uid_of(part) : std::nullopt) {
      pod_uid = *uid;
    } else if (std::optional<ParsedCgroupName> name = parse_part(part, parent)) {
      name->cgroup = so_far;
      name->pod_uid = std::exchange(pod_uid, {});
      found = std::move(name);
      below_kubepods = false;  // processes of a container choose the names of the cgroups in it
    }
    parent = part;
  }
  return found;
}

std::string pod_uid_in(std::string_view path) {
  const bool is_of_kubelet = path.find("kubepods") != std::string_view::npos;
  return is_of_kubelet ? pod_uid_of(base_name(path)).value_or("") : std::string();
}

bool is_guaranteed(std::string_view path) {
  return path.find("besteffort") == std::string_view::npos && path.find("burstable") == std::string_view::npos;
}

}  // namespace hf::container
