#include "host/writer.h"

#include <algorithm>
#include <array>

#include "adapters/engine/monitor.h"
#include "core/base/text.h"
#include "core/container/cgroup_name.h"
#include "kernel/process/process.h"

namespace hf::host {
namespace {

using container::Ancestor;
using container::Pid;
using container::Writer;

constexpr std::size_t kMostParents = 16;

// Services that are named as the origin of a change, whatever started them.
constexpr std::array<std::string_view, 14> kServices = {"kubelet", "dockerd",   "containerd", "crio",      "podman",
                                                        "systemd", "buildkitd", "k3s",        "rke2",      "nomad",
                                                        "lxd",     "incusd",    "slurmstepd", "nvidia-ctk"};

std::string directory_of(Pid pid) { return "proc/" + std::to_string(pid.value); }

void read_parents(const kernel::Host& host, Writer& writer) {
  if (!writer.parents.empty() && !writer.parents.front().name.empty()) {
    return;  // the kernel has reported them
  }
  const Result<kernel::Process> process = kernel::read_process(host, writer.pid);
  if (process && writer.name.empty()) {
    writer.name = process->name;
  }
  Pid parent = process ? process->parent : writer.parents.empty() ? Pid{} : writer.parents.front().pid;
  writer.parents.clear();
  while (parent.value > 0 && writer.parents.size() < kMostParents) {
    const Result<kernel::Process> above = kernel::read_process(host, parent);
    if (!above) {
      return;
    }
    writer.parents.push_back({parent, above->name});
    parent = above->parent;
  }
}

// The cgroup paths of the writer in all hierarchies.
std::vector<std::string> paths_of(const kernel::Host& host, Pid pid) {
  std::vector<std::string> paths;
  const std::string lines = kernel::read_cgroup_lines(host, pid);
  for (const std::string_view line : split(lines, '\n')) {
    if (!line.empty()) {
      paths.push_back(container::path_in_line(line));
    }
  }
  return paths;
}

// "containerd-shim-runc-v2 -namespace moby": the shim of a container works for the client that owns the namespace.
std::string client_of_shim(const kernel::Host& host, const Ancestor& shim) {
  const std::optional<engine::Monitor> monitor = engine::parse_monitor(kernel::read_command_line(host, shim.pid));
  if (!monitor || monitor->kind != engine::Monitor::Kind::shim) {
    return {};
  }
  return monitor->name_space == "moby" ? "dockerd" : monitor->name_space == "k8s.io" ? "kubelet" : "containerd";
}

struct Service {
  std::string name;
  std::vector<std::string> through;
};

Service service_of(const kernel::Host& host, const Writer& writer) {
  std::vector<Ancestor> line = {{writer.pid, writer.name}};
  line.insert(line.end(), writer.parents.begin(), writer.parents.end());
  for (const Ancestor& one : line) {
    if (one.name.starts_with("containerd-shim")) {
      const std::string client = client_of_shim(host, one);
      return client.empty() || client == "containerd" ? Service{"containerd", {"containerd-shim"}}
                                                      : Service{client, {"containerd-shim", "containerd"}};
    }
    if (one.name == "conmon") {
      return {"podman", {"conmon"}};
    }
    const bool is_first = one.pid.value == 1;
    if (std::ranges::find(kServices, one.name) != kServices.end() && (!is_first || &one == line.data())) {
      return {one.name, {}};
    }
  }
  return {};
}

std::string unit_of(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    for (const std::string_view part : split(path, '/')) {
      if (part.ends_with(".service") && !part.starts_with("user@")) {
        return std::string(part);
      }
    }
  }
  return {};
}

}  // namespace

void identify(const kernel::Host& host, Writer& writer) {
  if (!writer.is_known()) {
    return;
  }
  read_parents(host, writer);
  writer.name = printable(writer.name);
  for (Ancestor& parent : writer.parents) {
    parent.name = printable(parent.name);
  }
  if (!writer.inside.empty()) {
    return;  // its memory is not read
  }
  const std::vector<std::string> paths = paths_of(host, writer.pid);
  for (const std::string& path : paths) {
    if (const std::optional<container::ParsedCgroupName> name = container::parse_cgroup_name(path)) {
      writer.inside = name->id;
      writer.command.clear();
      return;
    }
  }
  const std::string program = kernel::read_link(host, directory_of(writer.pid) + "/exe");
  writer.program = program.empty() ? writer.program : program;  // what was read before the process ended stays
  if (writer.command.empty()) {
    writer.command = join(kernel::read_command_line(host, writer.pid), " ");
  }
  Service service = service_of(host, writer);
  service.name = service.name.empty() ? unit_of(paths) : service.name;
  if (!service.name.empty()) {
    writer.service = printable(service.name);
    writer.through = std::move(service.through);
  }
  writer.program = printable(writer.program);
  writer.command = printable(writer.command);
}

}  // namespace hf::host
