#include "support/doctor_cases.h"

#include <algorithm>

namespace hf::test {
namespace {

using container::AccessFailure;
using device::Device;
using device::Kind;

constexpr std::int64_t kStartedAt = 1000;

device::Node node_of(const std::string& path, device::Part part, std::uint32_t major, std::uint32_t minor) {
  device::Node node;
  node.path = path;
  node.device_class = "nvidia";
  node.part = part;
  node.live = Device{Kind::character, major, minor};
  node.expected = node.live;
  return node;
}

device::Unit gpu(const std::string& name, const std::string& pci) {
  device::Unit unit;
  unit.device_class = "nvidia";
  unit.name = name;
  unit.uuid = "GPU-" + name;
  unit.pci = pci;
  unit.nodes = {"/dev/nvidia" + name};
  unit.health = device::Health::good;
  return unit;
}

container::NodeState state_of_node(const device::Node& on_host) {
  container::OwedNode owed;
  owed.path = on_host.path;
  owed.device_class = on_host.device_class;
  owed.part = on_host.part;
  owed.device = on_host.live;
  owed.access = device::Access::read | device::Access::write;
  owed.because = {"the bundle"};
  owed.sources = {container::Source::oci};
  container::NodeState state;
  state.owed = std::move(owed);
  state.seen.path = on_host.path;
  state.seen.device = on_host.live;
  state.gates = {container::Answer::Kind::allow, {}};
  return state;
}

}  // namespace

device::Table table(std::initializer_list<const char*> rules) {
  device::RuleSet parsed;
  for (const char* rule : rules) {
    parsed.push_back(*device::parse_rule(rule));
  }
  return device::Table::of_rules(parsed);
}

container::Gate program_gate(std::uint32_t id, const std::string& cgroup, const device::Table& meaning) {
  container::Gate gate;
  gate.where = "/sys/fs/cgroup" + cgroup;
  gate.cgroup = container::CgroupPath{cgroup};
  gate.owner = "runc";
  gate.program =
      container::AttachedProgram{container::ProgramId{id}, {}, 0, kStartedAt, container::Attachment::several, {}};
  gate.meaning = meaning;
  return gate;
}

HostScene::HostScene() {
  host.has_v2 = true;
  host.jit_harden = 0;
  host.inventory.nodes = {node_of("/dev/nvidia0", device::Part::unit, 195, 0),
                          node_of("/dev/nvidia1", device::Part::unit, 195, 1),
                          node_of("/dev/nvidiactl", device::Part::control, 195, 255),
                          node_of("/dev/nvidia-uvm", device::Part::control, 238, 0)};
  for (const device::Node& one : host.inventory.nodes) {
    host.linked.insert(*one.live);
  }
  host.inventory.units = {gpu("0", "0000:65:00.0"), gpu("1", "0000:b3:00.0")};
  host.inventory.states = {{"nvidia", "550.54.15", "", "", "", "", {"nvidia", "nvidia_uvm"}}};
  host.inventory.drivers = device::parse_driver_names("Character devices:\n195 nvidia\n238 nvidia-uvm\n");
  host.library_files = {{"/usr/lib64/libnvidia-ml.so.550.54.15", "550.54.15"}};
}

device::Node& HostScene::node(const std::string& path) {
  return *std::ranges::find(host.inventory.nodes, path, &device::Node::path);
}

ContainerScene::ContainerScene() {
  container().id = container::ContainerId{"0123456789abcdef"};
  container().name = "web";
  container().cgroup = "/docker/web";
  container().v2 = "/docker/web";
  container().init = container::Pid{42};
  container().started_at = kStartedAt;
  container().runtime = container::Runtime{"runc", "/usr/bin/runc", "1.1.12"};
  container().driver = container::CgroupDriver::cgroupfs;
  container().bundle = "/bundle";
  discovered.spec.emplace();
  discovered.spec_file = "/bundle/config.json";
  facts.discovered = &discovered;
  facts.spec_table = table({"c 195:0 rw", "c 195:255 rw"});
  for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl"}) {
    facts.nodes.push_back(state_of_node(*host.inventory.find(path)));
    facts.entitlement.nodes.push_back(*facts.nodes.back().owed);
  }
  facts.observed.gates = {program_gate(10, "/docker/web", facts.spec_table)};
}

container::NodeState& ContainerScene::node(const std::string& path) {
  return *std::ranges::find(facts.nodes, path, [](const container::NodeState& state) { return state.owed->path; });
}

void ContainerScene::change_owed(const std::string& path, const std::function<void(container::OwedNode&)>& change) {
  container::OwedNode owed = *node(path).owed;
  change(owed);
  node(path).owed = std::move(owed);
}

void ContainerScene::fail(const std::string& path, AccessFailure failure) {
  node(path).diagnosis = {failure, "it fails"};
  node(path).gates.kind =
      failure == AccessFailure::cgroup_denies ? container::Answer::Kind::deny : container::Answer::Kind::allow;
}

void ContainerScene::put_in_pod() {
  container().pod = container::Pod{"uid-1", "pod", "default", "main"};
  host.sources.checkpoint.emplace();
}

void ContainerScene::put_in_unit(const device::Table& allowed) {
  container().unit = "docker-web.scope";
  container().driver = container::CgroupDriver::systemd;
  facts.unit.emplace();
  facts.unit->files = {"/run/systemd/transient/docker-web.scope"};
  facts.unit_table = allowed;
}

}  // namespace hf::test
