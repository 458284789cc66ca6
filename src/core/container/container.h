// Container: identity of a container: its names, its cgroups, its first process, and the engine and runtime behind it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/strong_id.h"
#include "core/container/cgroup/cgroup_path.h"

namespace hf::container {

using ContainerId = StrongId<struct ContainerIdTag, std::string>;

enum class CgroupDriver : std::uint8_t { cgroupfs, systemd };
std::string to_string(CgroupDriver driver);

struct Pod {
  std::string uid;  // from its cgroup alone, as images can set annotations and labels; "" outside pods
  std::string name;
  std::string name_space;
  std::string container;         // the container's name within the pod
  bool is_named_by_cri = false;  // the names are those of the engine's CRI, not of labels that an image can set
};

// The program that started the container: runc, crun, or a wrapper around them.
struct Runtime {
  std::string name;                    // "runc", "crun", "nvidia-container-runtime"
  std::string program;                 // its path
  std::optional<std::string> version;  // "1.1.5"
};

// A container without an engine has its runtime's name there.
inline constexpr std::array<std::string_view, 7> kEngineNames = {"containerd", "cri-o",  "crun", "docker",
                                                                 "lxc",        "podman", "runc"};

struct Container {
  ContainerId id;
  std::optional<std::string> name;            // in its engine
  bool shares_title = false;                  // with another container of the host: then only the id is unambiguous
  std::optional<std::string> image;           // as the engine names it
  std::optional<std::string> engine;          // one of kEngineNames
  std::optional<std::string> name_space;      // containerd's
  std::map<std::string, std::string> labels;  // the engine's, and the bundle's annotations: untrusted
  std::optional<Pod> pod;
  bool is_sandbox = false;  // a pod's pause container

  Pid init;
  std::int64_t started_ticks = 0;         // of its first process, since boot: with the pid it identifies the process
  std::int64_t started_at = 0;            // seconds since 1970
  std::uint64_t mount_namespace = 0;      // inode
  std::map<std::string, std::string> v1;  // path by controller
  std::optional<std::string> v2;          // path
  std::string cgroup;                     // its own, above those its processes created; a path in its hierarchy

  std::optional<Runtime> runtime;
  std::optional<CgroupDriver> driver;
  std::optional<std::string> unit;    // systemd's
  std::optional<std::string> bundle;  // the directory with config.json, as the runtime's process sees it
  std::optional<std::string> cpus;    // "0-3"
  bool has_exclusive_cpus = false;
  std::string ignored_request;        // why labels that ask for CPUs do not count
  std::optional<ContainerId> inside;  // the container around it, which controls what this one claims
  bool is_owned_by_user = false;      // an unprivileged user owns its cgroup and chose the name
  bool shares_cgroup = false;         // it shares its cgroup with processes of the host and has none of its own
};

// `path` is the cgroup of the container's first process in one hierarchy. Returns the part of it that is the
// container's own cgroup. Absent where the process is elsewhere: in a slice above it, or where it was started from.
// Other processes use such a cgroup as well.
std::optional<std::string> own_cgroup_in(const Container& container, const std::string& path);

bool is_run_by(const Container& container, std::string_view runtime);
std::string title_of(const Runtime& runtime);  // "runc 1.1.5", or "runc" where its version is unknown
// The namespace of its pod, or containerd's; "" where there is none.
std::string name_space_of(const Container& container);
// The same for people: docker keeps its containers in a namespace of containerd called moby, which its users do not
// know.
std::string shown_name_space(std::string_view engine, const std::string& name_space);

// The name for people: "pod/container", the name, or the first characters of the id.
std::string title_of(const Container& container);
std::string short_id(const ContainerId& id);
std::string unambiguous_name_of(const Container& container);  // names this container and no other

// The containers that `name` may refer to: by id, by name, by "pod/container", or by the beginning of an id. An exact
// id takes precedence, and containers that users or other containers have named count only where no other matches.
std::vector<const Container*> matches_of(const std::vector<Container>& containers, const std::string& name);

}  // namespace hf::container
