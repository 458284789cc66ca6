#include "host/bundle.h"

#include <algorithm>
#include <array>

#include <fcntl.h>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"

namespace hf::host {
namespace {

using engine::Monitor;

// Directories with one directory per container, and directories of such directories (one per namespace of containerd).
constexpr std::array<const char*, 3> kStateRoots = {"/run/runc", "/run/crun", "/run/youki"};
constexpr std::array<const char*, 5> kStateRootsByNamespace = {"/run/containerd/runc", "/run/docker/runtime-runc",
                                                               "/run/containerd/crun", "/run/docker/runtime-nvidia",
                                                               "/run/k3s/containerd/runc"};
constexpr std::array<const char*, 4> kBundlesByNamespace = {
    "/run/containerd/io.containerd.runtime.v2.task", "/run/k3s/containerd/io.containerd.runtime.v2.task",
    "/run/docker/containerd/daemon/io.containerd.runtime.v2.task", "/run/containerd/io.containerd.runtime.v1.linux"};
constexpr std::array<const char*, 2> kBundlesOfStorage = {"/run/containers/storage/overlay-containers",
                                                          "/var/lib/containers/storage/overlay-containers"};

bool is_plain(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
}

// A pid may be reused: the start time shows whether it is the same process.
bool is_about(const oci::RuntimeState& state, const kernel::ProcessHandle& init) {
  const Result<kernel::Process> process = kernel::read_process(init);
  return process && state.pid == init.pid.value && state.started_at &&
         std::int64_t(*state.started_at) == process->started_at;
}

}  // namespace

BundleFinder::BundleFinder(const kernel::Host& host, const std::vector<std::string>& state_roots,
                           std::set<std::string> cgroups)
    : host_(host), cgroups_(std::move(cgroups)) {
  const auto add = [this](const std::string& root) {
    for (const std::string& id : kernel::list_names(host_.root.get(), kernel::below_root(root))) {
      const std::string directory = std::string(root).append("/").append(id);
      if (kernel::exists(host_.root.get(), kernel::below_root(directory + "/state.json"))) {
        states_.emplace(id, StateFile{directory + "/state.json", false});
      } else if (kernel::exists(host_.root.get(), kernel::below_root(directory + "/status"))) {
        states_.emplace(id, StateFile{directory + "/status", true});
      }
    }
  };
  for (const char* root : kStateRoots) {
    add(root);
  }
  for (const std::string& root : state_roots) {
    add(root);
  }
  for (const char* root : kStateRootsByNamespace) {
    for (const std::string& name : kernel::list_names(host_.root.get(), kernel::below_root(root))) {
      add(std::string(root) + "/" + name);
    }
  }
}

std::optional<oci::RuntimeState> BundleFinder::read_state(const StateFile& file) const {
  const Result<std::string> text = kernel::read_trusted_file(host_.root.get(), kernel::below_root(file.path));
  if (!text) {
    return std::nullopt;
  }
  const Result<oci::RuntimeState> state = file.is_crun ? oci::parse_crun_status(*text) : oci::parse_runc_state(*text);
  return state ? std::optional(*state) : std::nullopt;
}

std::optional<std::string> BundleFinder::id_of(const kernel::ProcessHandle& init) const {
  for (const auto& [id, file] : states_) {
    const std::optional<oci::RuntimeState> state = read_state(file);
    if (state && is_about(*state, init)) {
      return id;
    }
  }
  return std::nullopt;
}

std::string BundleFinder::container_around(const std::string& path) const {
  for (container::CgroupPath at{path}; !at.is_root(); at = at.parent()) {
    if (cgroups_.contains(at.text)) {
      return at.text;
    }
  }
  return {};
}

// Any process can call itself conmon and have any working directory: only one that runs as root of the host, outside
// of containers, is trusted.
bool BundleFinder::is_trusted_monitor(const kernel::ProcessHandle& process, const std::string& cgroup) const {
  if (!kernel::is_root_of_host(host_, process)) {
    return false;
  }
  // Nor may its cgroup be above the container's: any process that was delegated a cgroup could arrange that.
  const std::string lines = kernel::read_cgroup_lines(process);
  return !lines.empty() && std::ranges::all_of(split(lines, '\n'), [&](std::string_view line) {
    const std::string path = container::path_in_line(line);
    const bool is_above = path.size() > 1 && (cgroup == path || cgroup.starts_with(path + "/"));
    return container_around(path).empty() && !is_above;
  });
}

void BundleFinder::find_in_default_directories(const std::string& id, const kernel::ProcessHandle& init,
                                               Bundle& bundle) const {
  const auto try_directory = [&](const std::string& path, BundleEvidence evidence) {
    if (bundle.directory || !is_plain(id)) {
      return;
    }
    if (Result<kernel::Fd> directory = kernel::open_plain_directory(host_.root.get(), kernel::below_root(path))) {
      bundle.directory = *std::move(directory);
      bundle.path = path;
      bundle.evidence = evidence;
    }
  };
  const auto [first, last] = states_.equal_range(id);
  for (auto entry = first; entry != last && !bundle.directory; ++entry) {
    const std::optional<oci::RuntimeState> state = read_state(entry->second);
    if (state && is_about(*state, init)) {
      bundle.state = state;
      if (state->bundle.starts_with('/')) {
        try_directory(state->bundle, BundleEvidence::state);
      }
    }
  }
  for (const char* root : kBundlesByNamespace) {
    for (const std::string& name : kernel::list_names(host_.root.get(), kernel::below_root(root))) {
      try_directory(std::string(root).append("/").append(name).append("/").append(id), BundleEvidence::name);
    }
  }
  for (const char* root : kBundlesOfStorage) {
    try_directory(std::string(root) + "/" + id + "/userdata", BundleEvidence::name);
  }
}

std::optional<Monitor> BundleFinder::find_monitor(const kernel::ProcessHandle& init, const std::string& cgroup,
                                                  kernel::ProcessHandle& monitor) const {
  const Result<kernel::Process> process = kernel::read_process(init);
  Result<kernel::ProcessHandle> parent = process ? kernel::hold_process(host_, process->parent)
                                                 : Result<kernel::ProcessHandle>(std::unexpected(process.error()));
  if (!parent || !is_trusted_monitor(*parent, cgroup)) {
    return std::nullopt;
  }
  std::optional<Monitor> found = engine::parse_monitor(kernel::read_command_line(host_, *parent));
  // Children of a parent that ends get another one: then the process that was read is not the parent.
  const Result<kernel::Process> after = kernel::read_process(init);
  if (!found || !after || after->parent != process->parent) {
    return std::nullopt;
  }
  monitor = *std::move(parent);
  return found;
}

Bundle BundleFinder::find(const std::string& id, const kernel::ProcessHandle& init, const std::string& cgroup) const {
  Bundle bundle;
  kernel::ProcessHandle monitor;
  bundle.monitor = find_monitor(init, cgroup, monitor);
  bundle.evidence = bundle.monitor ? BundleEvidence::monitor : BundleEvidence::name;
  if (bundle.monitor && bundle.monitor->kind == Monitor::Kind::shim && is_plain(id)) {
    // The working directory of the shim is the bundle of its first container; those of the pod's others lie beside it.
    const std::string here = kernel::read_link(monitor.directory.get(), "cwd");
    const bool is_other = std::string(base_name(here)) != id;
    const std::string place = is_other ? "cwd/../" + id : "cwd";
    if (Result<kernel::Fd> directory = kernel::open_directory(monitor.directory.get(), place)) {
      bundle.directory = *std::move(directory);
      bundle.path = is_other ? here.substr(0, here.rfind('/')) + "/" + id : here;
      bundle.evidence = is_other ? BundleEvidence::name
                                 : bundle.evidence;  // the shim proves only the bundle in its working directory
    }
  } else if (bundle.monitor && bundle.monitor->bundle.starts_with('/')) {
    const std::string path = kernel::below_root(bundle.monitor->bundle);
    if (Result<kernel::Fd> directory = kernel::open_plain_directory(host_.root.get(), path)) {
      bundle.directory = *std::move(directory);
      bundle.path = bundle.monitor->bundle;
    }
  }
  if (!bundle.directory) {
    bundle.evidence = BundleEvidence::name;
    find_in_default_directories(id, init, bundle);
  }
  if (!bundle.directory) {
    bundle.problem = "no bundle of it was found";
  } else if (!kernel::is_trusted_directory(bundle.directory.get())) {
    bundle.directory = kernel::Fd();
    bundle.problem = "others than root may write to its bundle " + bundle.path;
  }
  if (bundle.directory && bundle.monitor && bundle.monitor->kind == Monitor::Kind::shim) {
    const Result<std::string> text = kernel::read_trusted_file(bundle.directory.get(), "options.json");
    bundle.options = text ? engine::parse_shim_options(*text).value_or(engine::ShimOptions()) : engine::ShimOptions();
  }
  return bundle;
}

}  // namespace hf::host
