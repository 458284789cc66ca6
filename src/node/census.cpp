#include "node/census.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>

#include "adapters/engine/keeper.h"
#include "adapters/kube/checkpoint.h"
#include "core/base/text.h"
#include "core/cpu/cpu_set.h"
#include "kernel/apart.h"
#include "kernel/cgroup.h"
#include "kernel/file.h"
#include "kernel/process.h"
#include "node/bundle.h"
#include "node/group.h"

namespace hf::node {
namespace {

using container::CgroupDriver;
using container::Container;
using container::Pid;
using engine::Keeper;

constexpr std::chrono::milliseconds kVersionLimit{1000};

// The unit a cgroup belongs to: systemd's own folders are slices down to it. Below, names are anybody's.
std::string unit_in(const std::string& path) {
  for (const std::string_view part : split(path, '/')) {
    if (part.ends_with(".scope") || part.ends_with(".service")) {
      return std::string(part);
    }
    if (!part.empty() && !part.ends_with(".slice")) {
      return {};
    }
  }
  return {};
}

// systemd gives a part of the tree to each user's manager: names of cgroups in it are the user's.
bool is_below_users_manager(const std::string& path) {
  return std::ranges::any_of(split(path, '/'), [](std::string_view part) {
    return part.starts_with("user@") && part.ends_with(".service") && part != "user@0.service";
  });
}

std::string cpus_of(const kernel::ProcessHandle& process) {
  const Result<std::string> status = kernel::read_text(process.directory.get(), "status");
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const std::size_t start = status ? status->find(kKey) : std::string::npos;
  if (start == std::string::npos) {
    return {};
  }
  const std::string_view rest = std::string_view(*status).substr(start + kKey.size());
  return std::string(trim(rest.substr(0, rest.find('\n'))));
}

class Registrar {
 public:
  // `versions`: absent where nobody waits for an answer.
  Registrar(const kernel::Host& host, const config::Config& config, RuntimeVersions* versions,
            std::set<std::string> cgroups)
      : host_(host), versions_(versions), bundles_(host, config.state_roots, std::move(cgroups)) {}

  // Everything is read through one handle, and checked to be of the process that was found: its number may be another's
  // by now.
  Result<Resident> register_group(const Group& group) {
    const kernel::ProcessHandle init = TRY(kernel::hold_process(host_, group.init));
    const kernel::Process process = TRY(kernel::read_process(init));
    Resident resident;
    Container& it = resident.container;
    it.init = group.init;
    it.v1 = group.v1;
    it.v2 = group.v2;
    it.started_ticks = process.started_at;
    it.started_at = clock().wall_time(process.started_at);
    it.mount_namespace = kernel::read_namespace(init, "mnt");
    it.cpus = cpus_of(init);
    name_by_cgroup(group, init, it);
    if (group.is_shared && !bundles_.id_of(init)) {
      return fail(std::errc::no_such_process, "a service of the host, with a pid namespace in it");
    }
    const Bundle bundle = bundles_.find(it.id.value, init, it.cgroup);
    name_by_keeper(bundle, it);
    read_spec(bundle, resident);
    it.is_guest = group.is_shared && !names_cgroup(resident);
    name_by_spec(resident);
    name_by_docker(resident);
    find_runtime(bundle, it);
    find_outer(it);
    make_printable(it);
    const kernel::Process after = TRY(kernel::read_process(init));
    if (after.has_ended || kernel::read_cgroup_lines(init) != group.lines) {
      return fail(std::errc::no_such_process, "it has ended, or moved to another cgroup, meanwhile");
    }
    return resident;
  }

 private:
  const kernel::BootClock& clock() {
    if (!clock_) {
      clock_ = kernel::BootClock::read(host_).value_or(kernel::BootClock());
    }
    return *clock_;
  }

  void name_by_cgroup(const Group& group, const kernel::ProcessHandle& init, Container& it) const {
    it.cgroup = group.cgroup;
    it.is_users = is_below_users_manager(it.cgroup) || is_in_users_cgroup(it);
    it.scope = unit_in(it.cgroup);
    if (!it.scope.empty()) {
      it.driver = CgroupDriver::systemd;
    }
    if (!group.words) {
      kernel::ProcessHandle parent;
      const std::optional<Keeper> keeper = bundles_.find_keeper(init, it.cgroup, parent);
      const std::string last(name_in(group.cgroup));
      // A shim that keeps a pod has the pod's id: then the cgroup's name is the better word.
      const bool by_keeper = keeper && !keeper->id.empty() && (keeper->id == last || last.empty());
      const std::optional<std::string> by_state = by_keeper ? std::nullopt : bundles_.id_of(init);
      it.id.value = by_keeper ? keeper->id : by_state ? *by_state : last;
      return;
    }
    it.id.value = group.words->id;
    it.engine = group.words->engine;
    it.driver = group.words->driver;
    if (!group.words->pod_uid.empty() && !it.is_users) {
      it.pod.emplace().uid = group.words->pod_uid;
    }
  }

  // The one above decides about names: who owns it makes and renames what lies in it.
  [[nodiscard]] bool is_in_users_cgroup(const Container& it) const {
    constexpr std::array kHierarchies = {container::Hierarchy::v1, container::Hierarchy::v2};
    return std::ranges::any_of(kHierarchies, [&](container::Hierarchy hierarchy) {
      const Result<kernel::Cgroup> above =
          host_.mount_of(hierarchy) ? kernel::open_cgroup(host_, hierarchy, container::CgroupPath{it.cgroup}.parent())
                                    : Result<kernel::Cgroup>(fail(std::errc::no_such_device, ""));
      return above && kernel::is_users(*above);
    });
  }

  static void name_by_keeper(const Bundle& bundle, Container& it) {
    if (!bundle.keeper) {
      it.engine = it.engine.empty() && bundle.state ? bundle.state->runtime : it.engine;
      return;
    }
    const Keeper& keeper = *bundle.keeper;
    it.name_space = keeper.name_space;
    it.name = it.name.empty() ? keeper.name : it.name;
    if (keeper.kind == Keeper::Kind::shim) {
      it.engine = keeper.name_space == "moby" ? "docker" : "containerd";
    } else if (it.engine.empty()) {
      it.engine = it.pod ? "cri-o" : "podman";
    }
  }

  static void read_spec(const Bundle& bundle, Resident& resident) {
    resident.container.bundle = bundle.path;
    resident.spec_file = bundle.path + "/config.json";
    if (!bundle.folder) {
      resident.spec_problem = bundle.problem;
      return;
    }
    const Result<std::string> text = kernel::read_trusted_file(bundle.folder.get(), "config.json");
    Result<oci::Spec> spec = text ? oci::parse_spec(*text) : Result<oci::Spec>(std::unexpected(text.error()));
    if (!spec) {
      resident.spec_problem = bundle.path + ": " + spec.error().message;
      return;
    }
    const std::string named = container::cgroup_named_by(spec->cgroups_path);
    const bool names_it = named == resident.container.cgroup;
    const bool names_another = !named.empty() && !names_it;
    if ((bundle.bond == Bond::name && !names_it) || (bundle.bond == Bond::state && names_another)) {
      resident.spec_problem = bundle.path +
                              ": nothing but its name ties it to the container, and it is made for the cgroup " +
                              quote(spec->cgroups_path);
      return;
    }
    resident.spec = *std::move(spec);
  }

  // Annotations of containerd's CRI, of CRI-O, and of podman.
  static void name_by_spec(Resident& resident) {
    if (!resident.spec) {
      return;
    }
    Container& it = resident.container;
    const auto annotation = [&resident](std::initializer_list<const char*> keys) {
      std::string text;
      for (const char* key : keys) {
        text = text.empty() ? oci::annotation_of(*resident.spec, key) : text;
      }
      return text;
    };
    it.labels = resident.spec->annotations;
    it.image = annotation({"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"});
    const std::string pod = annotation({"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"});
    const std::string type = annotation({"io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"});
    it.is_sandbox = type == "sandbox";
    if (pod.empty() && !it.pod) {
      return;
    }
    container::Pod& words = it.pod ? *it.pod : it.pod.emplace();
    words.name = pod;
    words.name_space = annotation({"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"});
    words.container = kube::container_name_in(resident.spec->annotations);
    words.container = words.container.empty() && it.is_sandbox ? "(sandbox)" : words.container;
  }

  // dockerd mounts a file from the folder of its record into each container: that tells where it is.
  std::string docker_record_of(const Resident& resident) {
    const std::string folder = "/containers/" + resident.container.id.value + "/";
    const std::vector<oci::SpecMount> none;
    for (const oci::SpecMount& mount : resident.spec ? resident.spec->mounts : none) {
      if (mount.source.ends_with(folder + std::string(name_in(mount.source))) &&
          mount.destination.starts_with("/etc/")) {
        return mount.source.substr(0, mount.source.rfind('/')) + "/config.v2.json";
      }
    }
    return docker_root() + folder + "config.v2.json";
  }

  void name_by_docker(Resident& resident) {
    Container& it = resident.container;
    if (it.engine != "docker" || !resident.spec) {
      return;  // a record is found by the id alone, and ids are anybody's word
    }
    const std::string file = docker_record_of(resident);
    const Result<std::string> text = kernel::read_trusted_file(host_.root.get(), kernel::below_root(file));
    const Result<engine::DockerRecord> record =
        text ? engine::parse_docker_record(*text) : Result<engine::DockerRecord>(std::unexpected(text.error()));
    if (!record) {
      return;
    }
    it.name = record->name;
    it.image = record->image;
    it.labels.insert(record->labels.begin(), record->labels.end());
    const auto label = [&record](const char* key) {
      const auto found = record->labels.find(key);
      return found == record->labels.end() ? std::string() : found->second;
    };
    if (!label("io.kubernetes.pod.uid").empty()) {  // kubelet with docker below it, or an image that says so
      container::Pod& words = it.pod ? *it.pod : it.pod.emplace();
      words = {words.uid, label("io.kubernetes.pod.name"), label("io.kubernetes.pod.namespace"),
               label("io.kubernetes.container.name")};
      it.is_sandbox = label("io.kubernetes.docker.type") == "podsandbox";
    }
  }

  const std::string& docker_root() {
    if (!docker_root_) {
      std::vector<std::string> words;
      for (const Pid pid : kernel::list_processes(host_)) {
        const Result<kernel::Process> process = kernel::read_process(host_, pid);
        const Result<kernel::ProcessHandle> dockerd =
            process && process->name == "dockerd" ? kernel::hold_process(host_, pid)
                                                  : Result<kernel::ProcessHandle>(fail(std::errc::no_such_process, ""));
        if (dockerd && bundles_.is_trusted_keeper(*dockerd, "/")) {
          words = kernel::read_command_line(host_, *dockerd);
        }
      }
      const Result<std::string> settings = kernel::read_text(host_.root.get(), "etc/docker/daemon.json");
      docker_root_ = engine::data_root_in(words, settings.value_or("{}"));
    }
    return *docker_root_;
  }

  void find_runtime(const Bundle& bundle, Container& it) {
    if (bundle.keeper && bundle.keeper->kind == Keeper::Kind::conmon) {
      it.runtime.program = bundle.keeper->runtime;
      it.driver = bundle.keeper->systemd_cgroup ? CgroupDriver::systemd : it.driver;
    } else if (bundle.keeper) {
      it.runtime.program = bundle.options.binary.empty() ? "runc" : bundle.options.binary;
    } else if (bundle.state) {
      it.runtime.program = bundle.state->runtime;
    }
    it.runtime.name = name_in(it.runtime.program);
    if (!it.driver) {
      it.driver = CgroupDriver::cgroupfs;
    }
    if (!it.runtime.program.empty() && versions_ != nullptr) {
      const engine::VersionWords& words = versions_->version_of(host_, it.runtime.program);
      it.runtime.version = words.version;
      it.runtime.name = words.name.empty() ? it.runtime.name : words.name;
    }
  }

  // A process of the host may have been moved into a container's cgroup, or the container into a service's.
  static bool names_cgroup(const Resident& resident) {
    const Container& it = resident.container;
    const std::string named = resident.spec ? container::cgroup_named_by(resident.spec->cgroups_path) : std::string();
    return named == it.cgroup || (named.empty() && name_in(it.cgroup) == it.id.value);
  }

  // Others chose these: what is shown of them must not look like anything of ours, colours included.
  static void make_printable(Container& it) {
    for (std::string* text : {&it.name, &it.image, &it.name_space}) {  // the id is what the ledger knows it by
      *text = printable(*text);
    }
    if (it.pod) {
      for (std::string* text : {&it.pod->name, &it.pod->name_space, &it.pod->container}) {
        *text = printable(*text);
      }
    }
  }

  // A container within a container: by its cgroup's path.
  void find_outer(Container& it) const {
    const std::string above = container::CgroupPath{it.cgroup}.parent().text;
    const std::string around = bundles_.container_around(above);
    const std::optional<container::CgroupWords> words = container::read_cgroup_words(above);
    if (words || !around.empty()) {
      it.inside = container::ContainerId{words ? words->id : std::string(name_in(around))};
    }
  }

  const kernel::Host& host_;
  RuntimeVersions* versions_;
  BundleFinder bundles_;
  std::optional<kernel::BootClock> clock_;
  std::optional<std::string> docker_root_;
};

std::string devices_of(const std::map<std::string, std::string>& v1) {
  const auto found = v1.find("devices");
  return found == v1.end() ? std::string() : found->second;
}

// Who was there at the last census.
class Acquaintances {
 public:
  explicit Acquaintances(const Census* before) {
    for (const Resident& resident : before != nullptr ? before->residents : kNobody) {
      known_.emplace(resident.container.init.value, &resident);
    }
  }

  // One whose bundle could not be read is asked again, and so is one whose first process became another program: the
  // runtime's own, before the container's starts.
  [[nodiscard]] const Resident* find(const kernel::Host& host, const Group& group) const {
    const auto found = known_.find(group.init.value);
    if (found == known_.end()) {
      return nullptr;
    }
    const Resident& resident = *found->second;
    const Result<kernel::ProcessHandle> init = kernel::hold_process(host, group.init);
    const Result<kernel::Process> process =
        init ? kernel::read_process(*init) : Result<kernel::Process>(std::unexpected(init.error()));
    const bool is_same = process && process->started_at == resident.container.started_ticks && resident.spec &&
                         resident.container.cgroup == group.cgroup && resident.container.v2 == group.v2 &&
                         devices_of(resident.container.v1) == devices_of(group.v1) &&
                         resident.container.mount_namespace == kernel::read_namespace(*init, "mnt") &&
                         kernel::read_cgroup_lines(*init) == group.lines;
    return is_same ? &resident : nullptr;
  }

 private:
  inline static const std::vector<Resident> kNobody;
  std::map<std::int32_t, const Resident*> known_;
};

// What may change while the container stays the same.
void refresh_cpus(const kernel::Host& host, Container& it) {
  const Result<kernel::ProcessHandle> init = kernel::hold_process(host, it.init);
  it.cpus = init ? cpus_of(*init) : it.cpus;
  it.has_exclusive_cpus = false;
}

// Exclusive: less than all CPUs, and none of them is another container's with another set. kubelet's own word counts
// first.
void mark_exclusive(const kernel::Host& host, std::vector<Resident>& residents) {
  const Result<std::string> online = kernel::read_text(host.root.get(), "sys/devices/system/cpu/online");
  const Result<std::string> state_text =
      kernel::read_trusted_file(host.root.get(), "var/lib/kubelet/cpu_manager_state");
  const kube::CpuState state =
      state_text ? kube::parse_cpu_state(*state_text).value_or(kube::CpuState()) : kube::CpuState();
  std::map<std::string, int> users;
  for (const Resident& resident : residents) {
    ++users[resident.container.cpus];
  }
  for (Resident& resident : residents) {
    Container& it = resident.container;
    if (it.pod && state.exclusive.contains(it.pod->uid + "/" + it.pod->container)) {
      it.has_exclusive_cpus = true;
      continue;
    }
    const Result<cpu::CpuSet> own = cpu::parse_cpu_set(it.cpus);
    const Result<cpu::CpuSet> all = online ? cpu::parse_cpu_set(*online) : own;
    if (!own || own->empty() || !all || *own == *all || users[it.cpus] > 1) {
      continue;
    }
    it.has_exclusive_cpus = std::ranges::none_of(users, [&](const auto& entry) {
      const Result<cpu::CpuSet> other = cpu::parse_cpu_set(entry.first);
      return entry.first != it.cpus && other && other->overlaps(*own);
    });
  }
}

}  // namespace

std::vector<Container> Census::containers() const {
  std::vector<Container> all;
  all.reserve(residents.size());
  for (const Resident& resident : residents) {
    all.push_back(resident.container);
  }
  return all;
}

const engine::VersionWords& RuntimeVersions::version_of(const kernel::Host& host, const std::string& program) {
  std::vector<std::string> places = {program};
  if (!program.starts_with('/')) {
    places = {"/usr/local/sbin/" + program, "/usr/local/bin/" + program, "/usr/sbin/" + program, "/usr/bin/" + program};
  }
  const auto place = std::ranges::find_if(
      places, [&host](const std::string& path) { return kernel::exists(host.root.get(), kernel::below_root(path)); });
  const std::string found = place == places.end() ? program : *place;
  const std::string stamp = kernel::stamp_of(host.root.get(), kernel::below_root(found));
  Known& known = known_[found];
  if (known.stamp != stamp || stamp.empty()) {
    const Result<std::string> text = kernel::run_program(host, found, {"--version"}, kVersionLimit);
    known = {stamp, text ? engine::parse_version(*text).value_or(engine::VersionWords()) : engine::VersionWords()};
  }
  return known.words;
}

Result<std::optional<Resident>> find_newcomer(const kernel::Host& host, const config::Config& config, Pid process,
                                              std::set<std::string> cgroups) {
  const std::optional<Group> group = find_group_of(host, process);
  if (!group) {
    return std::nullopt;
  }
  cgroups.insert(group->cgroup);
  return TRY(Registrar(host, config, nullptr, std::move(cgroups)).register_group(*group));
}

Result<Census> take_census(const kernel::Host& host, const config::Config& config) {
  RuntimeVersions versions;
  return take_census(host, config, versions);
}

Result<Census> take_census(const kernel::Host& host, const config::Config& config, RuntimeVersions& versions,
                           const Census* before) {
  Census census;
  const Acquaintances known(before);
  const std::vector<Group> groups = find_groups(host);
  std::set<std::string> cgroups;
  for (const Group& group : groups) {
    cgroups.insert(group.cgroup);
  }
  Registrar registrar(host, config, &versions, std::move(cgroups));
  for (const Group& group : groups) {
    const Resident* same = known.find(host, group);
    Result<Resident> resident = same != nullptr ? *same : registrar.register_group(group);
    if (same != nullptr) {
      refresh_cpus(host, resident->container);
    }
    if (resident) {
      census.residents.push_back(*std::move(resident));
    }  // otherwise it has ended meanwhile
  }
  mark_exclusive(host, census.residents);
  std::map<std::string, int> titles;
  for (const Resident& resident : census.residents) {
    ++titles[title_of(resident.container)];
  }
  for (Resident& resident : census.residents) {
    resident.container.shares_title = titles[title_of(resident.container)] > 1;
  }
  std::ranges::sort(census.residents, [](const Resident& a, const Resident& b) {
    return std::pair(title_of(a.container), a.container.id) < std::pair(title_of(b.container), b.container.id);
  });
  return census;
}

}  // namespace hf::node
