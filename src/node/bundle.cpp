#include "node/bundle.h"

#include <algorithm>
#include <array>

#include <fcntl.h>

#include "core/base/text.h"
#include "kernel/file.h"
#include "kernel/tree.h"

namespace hf::node {
namespace {

using engine::Keeper;

// Folders with one folder per container, and folders of such folders (one per namespace of containerd).
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

// A pid may be used again: the start time tells whether it is the same process.
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
      const std::string folder = std::string(root).append("/").append(id);
      if (kernel::exists(host_.root.get(), kernel::below_root(folder + "/state.json"))) {
        states_.emplace(id, StateFile{folder + "/state.json", false});
      } else if (kernel::exists(host_.root.get(), kernel::below_root(folder + "/status"))) {
        states_.emplace(id, StateFile{folder + "/status", true});
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

// Any process can call itself conmon and stand in any directory: only root of the host, outside of containers, is
// believed.
bool BundleFinder::is_trusted_keeper(const kernel::ProcessHandle& process, const std::string& cgroup) const {
  if (!kernel::is_root_of_host(host_, process)) {
    return false;
  }
  // Nor may it sit above its container: whoever was given a cgroup to divide could.
  const std::string lines = kernel::read_cgroup_lines(process);
  return !lines.empty() && std::ranges::all_of(split(lines, '\n'), [&](std::string_view line) {
    const std::string path = container::path_in_line(line);
    const bool is_above = path.size() > 1 && (cgroup == path || cgroup.starts_with(path + "/"));
    return container_around(path).empty() && !is_above;
  });
}

void BundleFinder::find_in_usual_places(const std::string& id, const kernel::ProcessHandle& init,
                                        Bundle& bundle) const {
  const auto try_folder = [&](const std::string& path, Bond bond) {
    if (bundle.folder || !is_plain(id)) {
      return;
    }
    if (Result<kernel::Fd> folder = kernel::open_plain_directory(host_.root.get(), kernel::below_root(path))) {
      bundle.folder = *std::move(folder);
      bundle.path = path;
      bundle.bond = bond;
    }
  };
  const auto [first, last] = states_.equal_range(id);
  for (auto entry = first; entry != last && !bundle.folder; ++entry) {
    const std::optional<oci::RuntimeState> state = read_state(entry->second);
    if (state && is_about(*state, init)) {
      bundle.state = state;
      if (state->bundle.starts_with('/')) {
        try_folder(state->bundle, Bond::state);
      }
    }
  }
  for (const char* root : kBundlesByNamespace) {
    for (const std::string& name : kernel::list_names(host_.root.get(), kernel::below_root(root))) {
      try_folder(std::string(root).append("/").append(name).append("/").append(id), Bond::name);
    }
  }
  for (const char* root : kBundlesOfStorage) {
    try_folder(std::string(root) + "/" + id + "/userdata", Bond::name);
  }
}

std::optional<Keeper> BundleFinder::find_keeper(const kernel::ProcessHandle& init, const std::string& cgroup,
                                                kernel::ProcessHandle& keeper) const {
  const Result<kernel::Process> process = kernel::read_process(init);
  Result<kernel::ProcessHandle> parent = process ? kernel::hold_process(host_, process->parent)
                                                 : Result<kernel::ProcessHandle>(std::unexpected(process.error()));
  if (!parent || !is_trusted_keeper(*parent, cgroup)) {
    return std::nullopt;
  }
  std::optional<Keeper> found = engine::parse_keeper(kernel::read_command_line(host_, *parent));
  // A parent that ends leaves its children to another: then the process that was read is not the parent.
  const Result<kernel::Process> after = kernel::read_process(init);
  if (!found || !after || after->parent != process->parent) {
    return std::nullopt;
  }
  keeper = *std::move(parent);
  return found;
}

Bundle BundleFinder::find(const std::string& id, const kernel::ProcessHandle& init, const std::string& cgroup) const {
  Bundle bundle;
  kernel::ProcessHandle keeper;
  bundle.keeper = find_keeper(init, cgroup, keeper);
  bundle.bond = bundle.keeper ? Bond::keeper : Bond::name;
  if (bundle.keeper && bundle.keeper->kind == Keeper::Kind::shim && is_plain(id)) {
    // The shim stands in the bundle of its first container; others of the pod lie beside it.
    const std::string here = kernel::read_link(keeper.directory.get(), "cwd");
    const bool is_other = std::string(name_in(here)) != id;
    const std::string place = is_other ? "cwd/../" + id : "cwd";
    if (Result<kernel::Fd> folder = kernel::open_directory(keeper.directory.get(), place)) {
      bundle.folder = *std::move(folder);
      bundle.path = is_other ? here.substr(0, here.rfind('/')) + "/" + id : here;
      bundle.bond = is_other ? Bond::name : bundle.bond;  // the shim vouches for the one it stands in
    }
  } else if (bundle.keeper && bundle.keeper->bundle.starts_with('/')) {
    const std::string path = kernel::below_root(bundle.keeper->bundle);
    if (Result<kernel::Fd> folder = kernel::open_plain_directory(host_.root.get(), path)) {
      bundle.folder = *std::move(folder);
      bundle.path = bundle.keeper->bundle;
    }
  }
  if (!bundle.folder) {
    bundle.bond = Bond::name;
    find_in_usual_places(id, init, bundle);
  }
  if (!bundle.folder) {
    bundle.problem = "no bundle of it was found";
  } else if (!kernel::is_trusted_directory(bundle.folder.get())) {
    bundle.folder = kernel::Fd();
    bundle.problem = "others than root may write to its bundle " + bundle.path;
  }
  if (bundle.folder && bundle.keeper && bundle.keeper->kind == Keeper::Kind::shim) {
    const Result<std::string> text = kernel::read_trusted_file(bundle.folder.get(), "options.json");
    bundle.options = text ? engine::parse_shim_options(*text).value_or(engine::ShimOptions()) : engine::ShimOptions();
  }
  return bundle;
}

}  // namespace hf::node
