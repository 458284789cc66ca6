// Container: who it is: its names, its processes' cgroups, who runs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/strong_id.h"
#include "core/container/cgroup_path.h"

namespace hf::container {

using ContainerId = StrongId<struct ContainerIdTag, std::string>;

enum class CgroupDriver : std::uint8_t { cgroupfs, systemd };
std::string to_string(CgroupDriver driver);

struct Pod {
  std::string uid;  // by its cgroup alone: annotations and labels may be the image's; "" where the cgroup is no pod's
  std::string name;
  std::string name_space;
  std::string container;  // the container's name within the pod
};

// The program that started it: runc, crun, or a wrapper around them.
struct Runtime {
  std::string name;     // "runc", "crun", "nvidia-container-runtime", "" where nothing tells
  std::string program;  // its path
  std::string version;  // "1.1.5"
};

struct Container {
  ContainerId id;
  std::string name;                           // as its engine calls it; "" where nothing tells
  bool shares_title = false;                  // with another container of the node: then only the id names it
  std::string image;                          // in the engine's words
  std::string engine;                         // "docker", "containerd", "podman", "cri-o", "kubelet", "lxc", "runc", …
  std::string name_space;                     // containerd's
  std::map<std::string, std::string> labels;  // the engine's, and the bundle's annotations: anybody's word
  std::optional<Pod> pod;
  bool is_sandbox = false;  // a pod's pause container

  Pid init;
  std::int64_t started_ticks = 0;         // of its first process, since boot: with the pid, who it is
  std::int64_t started_at = 0;            // seconds since 1970
  std::uint64_t mount_namespace = 0;      // inode
  std::map<std::string, std::string> v1;  // path by controller
  std::optional<std::string> v2;          // path
  std::string cgroup;                     // the container's own, above any its processes made; a path in its hierarchy

  Runtime runtime;
  std::optional<CgroupDriver> driver;
  std::string scope;   // systemd's unit, "" where there is none
  std::string bundle;  // the folder with config.json, as the runtime's process sees it
  std::string cpus;    // "0-3"
  bool has_exclusive_cpus = false;
  std::optional<ContainerId> inside;  // of another container: what it says of itself is that one's word
  bool is_users = false;              // its cgroup belongs to a user, who chose the name
  bool is_guest = false;              // in a cgroup of others, with processes of the host: it has none of its own
};

// The part of a path of its first process, in one hierarchy, that is the container's own cgroup. Absent where the
// process is elsewhere: in a slice above it, or where it was started from. Such a cgroup is others' as well.
std::optional<std::string> own_cgroup_in(const Container& container, const std::string& path);

// What people call it: the pod's words, the name, or the id's first letters.
std::string title_of(const Container& container);
std::string short_id(const ContainerId& id);
std::string word_for(const Container& container);  // that means this container and no other

// The containers a person may mean by a word: by id, by name, by "pod/container", or by the beginning of an id. An
// exact id counts before all else, and containers that users or other containers have named count only where no other
// fits.
std::vector<const Container*> matches_of(const std::vector<Container>& containers, const std::string& word);

}  // namespace hf::container
