#include "host/container_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "adapters/engine/monitor.h"
#include "adapters/kube/pod_names.h"
#include "core/base/text.h"
#include "host/bundle.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/files/file.h"

namespace hf::host {
namespace {

using container::CgroupDriver;
using container::Container;
using container::Pid;
using engine::Monitor;

// The unit a cgroup belongs to: all directories above it are slices of systemd. Names below it are chosen by users.
std::optional<std::string> unit_in(const std::string& path) {
  for (const std::string_view part : split(path, '/')) {
    if (part.ends_with(".scope") || part.ends_with(".service")) {
      return std::string(part);
    }
    if (!part.empty() && !part.ends_with(".slice")) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Absent where a format writes "" for what it does not know.
std::optional<std::string> known(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

// systemd delegates a part of the tree to each user's manager: the user chooses the names of cgroups in it.
bool is_below_users_manager(const std::string& path) {
  return std::ranges::any_of(split(path, '/'), [](std::string_view part) {
    return part.starts_with("user@") && part.ends_with(".service") && part != "user@0.service";
  });
}

}  // namespace

std::optional<std::string> cpus_of(const kernel::ProcessHandle& process) {
  const Result<std::string> status = kernel::read_text(process.directory.get(), "status");
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const std::size_t start = status ? status->find(kKey) : std::string::npos;
  if (start == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view rest = std::string_view(*status).substr(start + kKey.size());
  return known(std::string(trim(rest.substr(0, rest.find('\n')))));
}

class ContainerReader::Reading {
 public:
  // `versions`: absent where the runtime must not be asked for its version.
  Reading(const kernel::Host& host, const config::Config& config, RuntimeVersions* versions,
          std::set<std::string> cgroups)
      : host_(host), versions_(versions), bundles_(host, config.state_roots, std::move(cgroups)) {}

  // Everything is read through one handle, and checked to be of the process that was found: its pid may have been
  // reused.
  Result<DiscoveredContainer> read_container(const Group& group) {
    const kernel::ProcessHandle init = TRY(kernel::hold_process(host_, group.init));
    const kernel::Process process = TRY(kernel::read_process(init));
    DiscoveredContainer discovered;
    Container& it = discovered.container;
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
    name_by_monitor(bundle, it);
    read_spec(bundle, discovered);
    it.shares_cgroup = group.is_shared && !names_cgroup(discovered);
    name_by_spec(discovered);
    name_by_docker(discovered);
    find_runtime(bundle, it);
    find_outer(it);
    make_printable(it);
    const kernel::Process after = TRY(kernel::read_process(init));
    if (after.has_ended || kernel::read_cgroup_lines(init) != group.lines) {
      return fail(std::errc::no_such_process, "it has ended, or moved to another cgroup, meanwhile");
    }
    return discovered;
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
    it.is_owned_by_user = is_below_users_manager(it.cgroup) || is_in_users_cgroup(it);
    it.unit = unit_in(it.cgroup);
    if (it.unit) {
      it.driver = CgroupDriver::systemd;
    }
    if (!group.name) {
      kernel::ProcessHandle parent;
      const std::optional<Monitor> monitor = bundles_.find_monitor(init, it.cgroup, parent);
      const std::string last(base_name(group.cgroup));
      // The shim of a pod has the pod's id: then the cgroup's name is the better id.
      const bool by_monitor = monitor && !monitor->id.empty() && (monitor->id == last || last.empty());
      const std::optional<std::string> by_state = by_monitor ? std::nullopt : bundles_.id_of(init);
      it.id.value = by_monitor ? monitor->id : by_state ? *by_state : last;
      return;
    }
    it.id.value = group.name->id;
    it.engine = known(group.name->engine);
    it.driver = group.name->driver;
    if (!group.name->pod_uid.empty() && !it.is_owned_by_user) {
      it.pod.emplace().uid = group.name->pod_uid;
    }
  }

  // The owner of the parent cgroup can create and rename what lies in it, and so chooses the name.
  [[nodiscard]] bool is_in_users_cgroup(const Container& it) const {
    constexpr std::array kHierarchies = {container::Hierarchy::v1, container::Hierarchy::v2};
    return std::ranges::any_of(kHierarchies, [&](container::Hierarchy hierarchy) {
      const Result<kernel::Cgroup> above =
          host_.mount_of(hierarchy) ? kernel::open_cgroup(host_, hierarchy, container::CgroupPath{it.cgroup}.parent())
                                    : Result<kernel::Cgroup>(fail(std::errc::no_such_device, ""));
      return above && kernel::is_owned_by_user(*above);
    });
  }

  static void name_by_monitor(const Bundle& bundle, Container& it) {
    if (!bundle.monitor) {
      it.engine = !it.engine && bundle.state ? known(bundle.state->runtime) : it.engine;
      return;
    }
    const Monitor& monitor = *bundle.monitor;
    it.name_space = known(monitor.name_space);
    it.name = it.name ? it.name : known(monitor.name);
    if (monitor.kind == Monitor::Kind::shim) {
      it.engine = monitor.name_space == "moby" ? "docker" : "containerd";
    } else if (!it.engine) {
      it.engine = it.pod ? "cri-o" : "podman";
    }
  }

  static void read_spec(const Bundle& bundle, DiscoveredContainer& discovered) {
    discovered.container.bundle = known(bundle.path);
    discovered.spec_file = bundle.path + "/config.json";
    if (!bundle.directory) {
      discovered.spec_problem = bundle.problem;
      return;
    }
    const Result<std::string> text = kernel::read_trusted_file(bundle.directory.get(), "config.json");
    Result<oci::Spec> spec = text ? oci::parse_spec(*text) : Result<oci::Spec>(std::unexpected(text.error()));
    if (!spec) {
      discovered.spec_problem = bundle.path + ": " + spec.error().message;
      return;
    }
    const std::string named = container::cgroup_named_by(spec->cgroups_path);
    const bool names_it = named == discovered.container.cgroup;
    const bool names_another = !named.empty() && !names_it;
    if ((bundle.evidence == BundleEvidence::name && !names_it) ||
        (bundle.evidence == BundleEvidence::state && names_another)) {
      discovered.spec_problem = bundle.path +
                                ": nothing but its name ties it to the container, and it is made for the cgroup " +
                                quote(spec->cgroups_path);
      return;
    }
    discovered.spec = *std::move(spec);
  }

  // Annotations of containerd's CRI, of CRI-O, and of podman.
  static void name_by_spec(DiscoveredContainer& discovered) {
    if (!discovered.spec) {
      return;
    }
    Container& it = discovered.container;
    // CRI-O copies the annotations of the pod's user, which may be containerd's keys.
    const auto annotation = [&discovered](const char* of_containerd, const char* of_crio) {
      const bool is_crio = discovered.container.engine == "cri-o";
      const std::string text = oci::annotation_of(*discovered.spec, is_crio ? of_crio : of_containerd);
      return text.empty() ? oci::annotation_of(*discovered.spec, is_crio ? of_containerd : of_crio) : text;
    };
    it.labels = discovered.spec->annotations;
    it.image = known(annotation("io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"));
    it.is_sandbox = annotation("io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType") == "sandbox";
    container::Pod named = kube::pod_named_in(it.labels, it.engine.value_or(""));
    if (named.name.empty() && !it.pod) {
      return;
    }
    named.uid = it.pod ? it.pod->uid : "";
    named.container = named.container.empty() && it.is_sandbox ? "(sandbox)" : named.container;
    it.pod = std::move(named);
  }

  // dockerd mounts a file from the directory of its record into each container: the source of that mount names it.
  std::string docker_record_of(const DiscoveredContainer& discovered) {
    const std::string directory = "/containers/" + discovered.container.id.value + "/";
    const std::vector<oci::SpecMount> none;
    for (const oci::SpecMount& mount : discovered.spec ? discovered.spec->mounts : none) {
      if (mount.source.ends_with(directory + std::string(base_name(mount.source))) &&
          mount.destination.starts_with("/etc/")) {
        return mount.source.substr(0, mount.source.rfind('/')) + "/config.v2.json";
      }
    }
    return docker_root() + directory + "config.v2.json";
  }

  void name_by_docker(DiscoveredContainer& discovered) {
    Container& it = discovered.container;
    if (it.engine != "docker" || !discovered.spec) {
      return;  // a record is found by the id alone, which proves nothing without a trusted bundle
    }
    const std::string file = docker_record_of(discovered);
    const Result<std::string> text = kernel::read_trusted_file(host_.root.get(), kernel::below_root(file));
    const Result<engine::DockerRecord> record =
        text ? engine::parse_docker_record(*text) : Result<engine::DockerRecord>(std::unexpected(text.error()));
    if (!record) {
      return;
    }
    it.name = known(record->name);
    it.image = known(record->image);
    it.labels.insert(record->labels.begin(), record->labels.end());
    drop_requests_of_image(*record, file, it);
    const auto label = [&record](const char* key) {
      const auto found = record->labels.find(key);
      return found == record->labels.end() ? std::string() : found->second;
    };
    if (!label("io.kubernetes.pod.uid").empty()) {  // kubelet with docker below it, or an image with such labels
      container::Pod& pod = it.pod ? *it.pod : it.pod.emplace();
      pod = {pod.uid, label("io.kubernetes.pod.name"), label("io.kubernetes.pod.namespace"),
             label("io.kubernetes.container.name"), false};
      it.is_sandbox = label("io.kubernetes.docker.type") == "podsandbox";
    }
  }

  // An image must not ask for CPUs: such labels count where the image is known and does not have them.
  void drop_requests_of_image(const engine::DockerRecord& record, const std::string& record_file, Container& it) const {
    constexpr std::string_view kRequest = "holdfast.cpus";
    const auto is_request = [kRequest](const auto& label) { return label.first.starts_with(kRequest); };
    if (std::ranges::none_of(record.labels, is_request)) {
      return;
    }
    const std::string data_root = record_file.substr(0, record_file.rfind("/containers/"));
    const std::optional<std::string> file = engine::image_file_of(record, data_root);
    const Result<std::string> text =
        file ? kernel::read_trusted_file(host_.root.get(), kernel::below_root(*file)) : Result<std::string>("");
    const auto of_image = text ? engine::parse_image_labels(*text)
                               : Result<std::map<std::string, std::string>>(std::unexpected(text.error()));
    const std::size_t dropped = std::erase_if(it.labels, [&](const auto& label) {
      const bool is_of_record = record.labels.contains(label.first);
      return is_request(label) && is_of_record && (!of_image || of_image->contains(label.first));
    });
    if (dropped > 0 && !of_image) {  // docker's containerd image store has no such file
      it.ignored_request =
          "its labels holdfast.cpus do not count, as those of its image are not known; use docker run --annotation";
    }
  }

  const std::string& docker_root() {
    if (!docker_root_) {
      std::vector<std::string> arguments;
      for (const Pid pid : kernel::list_processes(host_)) {
        const Result<kernel::Process> process = kernel::read_process(host_, pid);
        const Result<kernel::ProcessHandle> dockerd =
            process && process->name == "dockerd" ? kernel::hold_process(host_, pid)
                                                  : Result<kernel::ProcessHandle>(fail(std::errc::no_such_process, ""));
        if (dockerd && bundles_.is_trusted_monitor(*dockerd, "/")) {
          arguments = kernel::read_command_line(host_, *dockerd);
        }
      }
      const Result<std::string> settings = kernel::read_text(host_.root.get(), "etc/docker/daemon.json");
      docker_root_ = engine::data_root_in(arguments, settings.value_or("{}"));
    }
    return *docker_root_;
  }

  static std::string runtime_program_of(const Bundle& bundle) {
    if (bundle.monitor && bundle.monitor->kind == Monitor::Kind::conmon) {
      return bundle.monitor->runtime;
    }
    if (bundle.monitor) {
      return bundle.options.binary.empty() ? "runc" : bundle.options.binary;
    }
    return bundle.state ? bundle.state->runtime : std::string();
  }

  void find_runtime(const Bundle& bundle, Container& it) {
    const bool is_systemds = bundle.monitor && bundle.monitor->systemd_cgroup;
    it.driver = is_systemds ? CgroupDriver::systemd : it.driver.value_or(CgroupDriver::cgroupfs);
    const std::string program = runtime_program_of(bundle);
    if (program.empty()) {
      return;
    }
    it.runtime = container::Runtime{std::string(base_name(program)), program, std::nullopt};
    if (versions_ != nullptr) {
      const engine::ParsedVersion& parsed = versions_->version_of(host_, program);
      it.runtime->version = known(parsed.version);
      it.runtime->name = parsed.name.empty() ? it.runtime->name : parsed.name;
    }
  }

  // A process of the host may have been moved into a container's cgroup, or the container into a service's.
  static bool names_cgroup(const DiscoveredContainer& discovered) {
    const Container& it = discovered.container;
    const std::string named =
        discovered.spec ? container::cgroup_named_by(discovered.spec->cgroups_path) : std::string();
    return named == it.cgroup || (named.empty() && base_name(it.cgroup) == it.id.value);
  }

  // Users choose these texts: they must not be able to imitate our own output, colours included.
  static void make_printable(Container& it) {
    for (std::optional<std::string>* text : {&it.name, &it.image, &it.name_space}) {  // not the id: the ledger's key
      *text = text->transform([](const std::string& shown) { return printable(shown); });
    }
    if (it.pod) {
      for (std::string* text : {&it.pod->name, &it.pod->name_space, &it.pod->container}) {
        *text = printable(*text);
      }
    }
  }

  // A container within a container is recognised by its cgroup's path.
  void find_outer(Container& it) const {
    const std::string above = container::CgroupPath{it.cgroup}.parent().text;
    const std::string around = bundles_.container_around(above);
    const std::optional<container::ParsedCgroupName> name = container::parse_cgroup_name(above);
    if (name || !around.empty()) {
      it.inside = container::ContainerId{name ? name->id : std::string(base_name(around))};
    }
  }

  const kernel::Host& host_;
  RuntimeVersions* versions_;
  BundleFinder bundles_;
  std::optional<kernel::BootClock> clock_;
  std::optional<std::string> docker_root_;
};

ContainerReader::ContainerReader(const kernel::Host& host, const config::Config& config, RuntimeVersions* versions,
                                 std::set<std::string> cgroups)
    : reading_(std::make_unique<Reading>(host, config, versions, std::move(cgroups))) {}

ContainerReader::~ContainerReader() = default;

Result<DiscoveredContainer> ContainerReader::read_container(const Group& group) {
  return reading_->read_container(group);
}

}  // namespace hf::host
