// page_server: the status page of an invented host, for page_test.py. It prints its address, then reads commands from
// standard input: "loss" publishes a record and a snapshot in which that container has lost its device, "blind" and
// "usual" a snapshot like that, "storm N" N records. "calm" and "trouble" publish another host with few containers.
#include <array>
#include <deque>
#include <iostream>
#include <memory>
#include <string>

#include "core/cpu/machine.h"
#include "kernel/files/clock.h"
#include "services/web/server.h"

namespace {

using namespace hf;

constexpr int kGpus = 8;
constexpr std::uint64_t kPast = 40;  // records of the host with few containers

device::Part part_of(const std::string& path) {
  return path == "/dev/nvidiactl"    ? device::Part::control
         : path == "/dev/nvidia-uvm" ? device::Part::helper
                                     : device::Part::unit;
}

container::NodeState node(const std::string& path, const std::string& device_class, unsigned minor, bool is_fine) {
  container::OwedNode owed;
  owed.part = part_of(path);
  owed.path = path;
  owed.device_class = device_class;
  owed.device = device::Device{device::Kind::character, 195, minor};
  owed.access = device::Access::read | device::Access::write;
  owed.because = {"oci (/run/containerd/io.containerd.runtime.v2.task/k8s.io/x/config.json)"};
  container::NodeState state;
  state.owed = std::move(owed);
  state.diagnosis.failure = is_fine ? container::AccessFailure::none : container::AccessFailure::cgroup_denies;
  state.diagnosis.text = is_fine ? "" : "open gives EPERM: the device cgroup denies it";
  return state;
}

container::State state_of(int number) {
  return number % 5 == 4     ? container::State::not_owed
         : number % 97 == 13 ? container::State::lost
         : number % 53 == 7  ? container::State::at_risk
                             : container::State::ok;
}

void name(container::Container& it, int number) {
  const std::array<const char*, 4> hostile = {"<img src=x onerror=alert(1)>",
                                              "\"><script>document.title='owned'</script>", "\xff\xfe broken bytes",
                                              "very-long-name-"};
  it.name = number < 4 ? hostile[std::size_t(number)] : "worker-" + std::to_string(number);
  *it.name += number == 3 ? std::string(300, 'x') : "";
  if (number >= 4 && number % 3 != 0) {
    it.pod =
        container::Pod{"uid", "trainer-" + std::to_string(number / 8), number % 2 == 0 ? "ml" : "research", *it.name};
  }
}

report::ContainerStatus guarded(int number) {
  report::ContainerStatus made;
  container::Container it;
  const std::string digits = std::to_string(number);
  it.id.value = std::string(64 - digits.size(), 'a') + digits;
  name(it, number);
  it.engine = number % 3 == 0 ? "docker" : "containerd";
  if (it.engine == "docker") {
    it.name_space = "moby";
  }
  it.image = "registry.example/train:" + digits;
  it.started_at = 1'794'700'000 + number;
  it.cgroup = "/kubepods.slice/pod" + digits;
  it.has_exclusive_cpus = number >= 4 && number < 12;
  it.cpus = it.has_exclusive_cpus ? std::to_string(number * 4) + "-" + std::to_string(number * 4 + 3) : "0-15,48-63";
  it.init.value = 1000 + number;
  made.state = state_of(number);
  made.mode = "heal";
  made.is_hardened = number % 2 == 0;
  made.losses = std::uint64_t(number % 7);
  made.heals = made.losses;
  std::vector<container::NodeState> nodes;
  if (made.state != container::State::not_owed) {
    const bool fine = made.state != container::State::lost;
    const unsigned gpu = unsigned(number % kGpus);
    nodes = {node("/dev/nvidia" + std::to_string(gpu), "nvidia", gpu, fine),
             node("/dev/nvidiactl", "nvidia", 255, fine), node("/dev/nvidia-uvm", "nvidia", 0, true)};
    if (number % 4 == 0) {
      nodes.push_back(node("/dev/infiniband/uverbs0", "rdma", 192, true));
    }
  }
  container::Entitlement owed;
  for (const container::NodeState& node : nodes) {
    owed.nodes.push_back(*node.owed);
  }
  made.container = std::move(it);
  made.owed = std::move(owed);
  made.nodes = std::move(nodes);
  return made;
}

device::Inventory inventory() {
  device::Inventory made;
  for (int i = 0; i < kGpus; ++i) {
    device::Unit unit;
    unit.device_class = "nvidia";
    unit.name = std::to_string(i);
    unit.model = "NVIDIA H200";
    unit.pci = "0000:" + std::to_string(10 + i * 10) + ":00.0";
    unit.numa = i / 4;
    unit.memory_bytes = std::uint64_t(143'771) << 20U;
    unit.health = i == 5 ? device::Health::bad : device::Health::good;
    unit.health_text = i == 5 ? "Xid 79: fallen off the bus" : "";
    unit.nodes = {"/dev/nvidia" + std::to_string(i)};
    made.units.push_back(unit);
  }
  device::DriverState driver;
  driver.device_class = "nvidia";
  driver.version = "580.159";
  driver.cuda_version = "13.0";
  made.states.push_back(driver);
  return made;
}

// The second GPU has a node too few.
resource::OfferStatus offer() {
  resource::OfferStatus status;
  status.offer.resource = "nvidia.com/gpu";
  status.is_connected = true;
  status.allocated = 12;
  for (int i = 0; i < kGpus; ++i) {
    const std::string name = std::to_string(i);
    status.offer.devices.push_back({name, name, name, {}, {}, {}});
  }
  status.offer.devices[1].problem = "/dev/nvidia-uvm is missing";
  return status;
}

// `age`: milliseconds before now.
report::BlameRecord record_at(std::uint64_t number, const std::string& title, std::int64_t age) {
  report::BlameRecord made;
  made.number = number;
  made.at = kernel::wall_now() - age;
  made.container = title;
  made.engine = "containerd";
  made.writer.pid.value = 812;
  made.writer.name = "runc";
  made.writer.through = {"containerd-shim", "containerd"};
  made.writer.service = "kubelet";
  made.writer.command = "runc --root /run/containerd/runc/k8s.io update --resources - x";
  made.program = container::ProgramId{61};
  made.replaced = container::ProgramId{57};
  made.lost = {"c 195:0 rw", "c 195:255 rw"};
  made.devices = {"/dev/nvidia0", "/dev/nvidiactl"};
  made.action = number % 5 == 0 ? report::Action::failed : report::Action::healed;
  made.error = number % 5 == 0 ? "replace a program: Device or resource busy" : "";
  if (made.action == report::Action::healed) {
    made.loss_ns = 38'200 * number;
    made.heal_ns = 12'000;
    made.steps = {"replaced program 61 with 62"};
  }
  return made;
}

report::BlameRecordPtr shared(report::BlameRecord record) {
  return std::make_shared<const report::BlameRecord>(std::move(record));
}

std::vector<report::Finding> findings() {
  return {{"HF-101",
           report::Severity::critical,
           "trainer-1/worker-13",
           guarded(13).container->id.value,
           "lost the right to open /dev/nvidia5, /dev/nvidiactl",
           "its device rules were rewritten by runc",
           {"program 61 of runc was attached at 05:14:08"},
           {"holdfast heal trainer-1/worker-13", "systemctl set-property x.scope 'DeviceAllow=/dev/nvidia5 rw'"}},
          {"HF-118",
           report::Severity::warning,
           "<b>bold</b>",
           guarded(12).container->id.value,  // it has all that it is owed
           "may be refused by the next daemon-reload",
           "",
           {"systemd has no DeviceAllow for /dev/nvidia7"},
           {"holdfast heal --all"}},
          {"HF-125",
           report::Severity::note,
           "web-14",
           guarded(14).container->id.value,  // it is owed nothing
           "asks for NVIDIA_VISIBLE_DEVICES=all, which no trusted source confirms",
           "",
           {},
           {}}};
}

// A host of a few containers, as people run them.
report::ContainerStatus sample(const std::string& name, const std::string& pod, container::State state,
                               const std::vector<int>& gpus) {
  report::ContainerStatus made;
  container::Container it;
  const std::string digits = std::to_string(std::hash<std::string>()(pod + "/" + name) % 1'000'000);
  it.id.value = digits + "4f1c9d02ab37" + std::string(52 - digits.size(), 'e');
  it.name = name;
  it.engine = pod.empty() ? "docker" : "containerd";
  if (!pod.empty()) {
    it.pod = container::Pod{"7d5c2f0e-91aa-4c8b-8b6f-2f7c6a4f1e11", pod, "ml", name};
  }
  it.image = "registry.example/ml/" + name + ":2.4";
  it.started_at = kernel::wall_now() / 1000 - 400'000;
  it.cgroup = "/system.slice/cri-containerd-" + it.id.value + ".scope";
  it.unit = "cri-containerd-" + it.id.value + ".scope";
  it.cpus =
      gpus.empty() ? "0-3,32-35" : std::to_string(gpus.front() * 4 + 4) + "-" + std::to_string(gpus.front() * 4 + 7);
  it.has_exclusive_cpus = !gpus.empty();
  it.init.value = 4242;
  made.state = state;
  made.mode = gpus.empty() ? "" : "heal";
  made.is_shielded = state == container::State::ok && !gpus.empty();
  std::vector<container::NodeState> nodes;
  container::Entitlement owed;
  const bool fine = state != container::State::lost;
  for (const int gpu : gpus) {
    nodes.push_back(node("/dev/nvidia" + std::to_string(gpu), "nvidia", unsigned(gpu), fine));
  }
  if (!gpus.empty()) {
    nodes.push_back(node("/dev/nvidiactl", "nvidia", 255, fine));
    nodes.push_back(node("/dev/nvidia-uvm", "nvidia", 0, true));
  }
  for (const container::NodeState& node : nodes) {
    owed.nodes.push_back(*node.owed);
  }
  made.container = std::move(it);
  made.owed = std::move(owed);
  made.nodes = std::move(nodes);
  return made;
}

report::CpuStatus managed(const std::vector<report::ContainerStatus>& containers) {
  report::CpuStatus status;
  status.topology = *cpu::find_machine("dgx-a100");
  status.online = cpu::all_cpus(status.topology);
  status.pool = status.online;
  status.reserved = *cpu::parse_cpu_set("0-1");
  for (const report::ContainerStatus& one : containers) {
    if (one.container->has_exclusive_cpus) {
      report::CpuContainer entry;
      entry.title = title_of(*one.container);
      entry.id = one.container->id.value;
      entry.is_exclusive = true;
      entry.cpus = *cpu::parse_cpu_set(one.container->cpus.value_or(""));
      status.pool = status.pool - entry.cpus;
      status.containers.push_back(entry);
    }
  }
  return status;
}

// `before`: the number of the last record of all. A page that has seen these wants no older one from the stream.
std::vector<report::BlameRecordPtr> past(const report::ContainerStatus& victim, std::uint64_t before) {
  std::vector<report::BlameRecordPtr> records;
  constexpr std::int64_t kHour = 3'600'000;
  for (std::uint64_t number = 1; number <= kPast; ++number) {
    report::BlameRecord one = record_at(number, title_of(*victim.container), std::int64_t(kPast - number) * 3 * kHour);
    one.number = before + number;
    one.id = victim.container->id.value;
    if (number % 3 == 0) {
      one.writer.name = "systemd";
      one.writer.pid.value = 1;
      one.writer.through.clear();
      one.writer.service.clear();
      one.writer.command = "/lib/systemd/systemd";
      one.action = report::Action::shielded;
      one.is_shielded = true;
      one.held_opens = number;
      one.error.clear();
      one.loss_ns.reset();
    }
    records.push_back(shared(std::move(one)));
  }
  return records;
}

std::shared_ptr<report::Snapshot> few_containers(bool in_trouble, std::uint64_t before) {
  using container::State;
  auto made = std::make_shared<report::Snapshot>();
  made->at = made->surveyed_at = made->started_at = kernel::wall_now();
  made->version = "0.1.0";
  made->kernel = "6.12.1";
  made->layout = "v2";
  made->host_name = "gpu-7.rack4.example";
  made->tiers.has_v2 = true;
  made->tiers.v2 = container::Tier::tracepoints;
  made->containers = {sample("main", "llama-train-0", in_trouble ? State::lost : State::ok, {0, 1}),
                      sample("server", "embedding-api-5d9f7c6b8-x2x9k", State::ok, {2}),
                      sample("notebook", "", in_trouble ? State::at_risk : State::ok, {3})};
  for (const char* pod : {"node-exporter", "kube-proxy", "coredns-76f75df574-abcde", "fluent-bit"}) {
    made->containers.push_back(sample("agent", pod, State::not_owed, {}));
  }
  const report::ContainerStatus& train = made->containers[0];
  const report::ContainerStatus& notebook = made->containers[2];
  if (in_trouble) {
    made->containers[0].codes = {"HF-101"};
    made->containers[0].losses = 27;
    made->containers[0].heals = 26;
    made->containers[2].codes = {"HF-201"};
    const std::string scope = *train.container->unit;
    made->findings = std::vector<report::Finding>{
        {"HF-101",
         report::Severity::critical,
         title_of(*train.container),
         train.container->id.value,
         "lost the right to open /dev/nvidia0, /dev/nvidia1, /dev/nvidiactl",
         "its device rules were rewritten by systemd",
         {"/dev/nvidia0 (c 195:0): v2:/sys/fs/cgroup/system.slice/" + scope +
              " program:57 (systemd) denies it, loaded 2026-11-15T08:15:07Z, 5h after the container started",
          "processes 4242 opened it before and go on using it: no need to restart them"},
         {"holdfast heal llama-train-0/main",
          "systemctl set-property --runtime " + scope +
              " 'DeviceAllow=/dev/char/195:0 rw' 'DeviceAllow=/dev/char/195:255 rw'"}},
        {"HF-201",
         report::Severity::warning,
         "notebook",
         notebook.container->id.value,
         "loses /dev/nvidia3 at the next systemctl daemon-reload",
         "systemd's unit does not list it",
         {"systemd has no DeviceAllow for /dev/nvidia3"},
         {"systemctl set-property --runtime docker-4f1c.scope 'DeviceAllow=/dev/char/195:3 rw'"}},
        {"HF-304", report::Severity::note, "host", "", "/dev/char has no symlinks for NVIDIA's devices", "", {}, {}}};
    made->records = past(train, before);
    made->counters.losses[{"attach", "kubelet"}] = 27;
    made->counters.heals[{"healed", "ok"}] = 26;
    made->counters.loss_duration.add(3'200'000);
    made->counters.heal_duration.add(400'000);
  }
  made->inventory = inventory();
  made->inventory.units[5].health = in_trouble ? device::Health::bad : device::Health::good;
  made->inventory.units[5].health_text = in_trouble ? "Xid 79: fallen off the bus" : "";
  made->online_cpus = "0-255";
  made->cpus = std::make_shared<const report::CpuStatus>(managed(made->containers));
  made->counters.events = {{"attach", 120}, {"load", 300}};
  return made;
}

class Stage {
 public:
  Stage(web::Board& board, int containers) : board_(board), containers_(containers) {
    for (int i = 0; i < 12; ++i) {
      records_.push_back(shared(record_at(++number_, "trainer-" + std::to_string(i) + "/main", 0)));
    }
  }

  void show(bool is_blind = false, int lost = -1) {
    const auto made = std::make_shared<report::Snapshot>();
    made->at = made->surveyed_at = kernel::wall_now();
    made->started_at = started_;
    made->version = "0.1.0";
    made->kernel = "6.12.1";
    made->layout = "v2";
    made->host_name = "gpu-7";
    made->tiers.has_v2 = true;
    made->tiers.v2 = container::Tier::tracepoints;
    made->tiers.why = {"functions: the kernel refuses fentry: Operation not supported"};
    made->is_blind = is_blind;
    made->why_blind = is_blind ? "read /proc: Permission denied" : "";
    for (int i = 0; i < containers_; ++i) {
      made->containers.push_back(guarded(i));
    }
    made->containers[13].codes = {"HF-101"};
    made->containers[12].codes = {"HF-118"};
    made->containers[14].codes = {"HF-125"};
    if (lost >= 0) {
      made->containers[std::size_t(lost)].state = container::State::lost;
      std::vector<container::NodeState> nodes = *made->containers[std::size_t(lost)].nodes;
      nodes[0] = node("/dev/nvidia0", "nvidia", 0, false);
      made->containers[std::size_t(lost)].nodes = std::move(nodes);
    }
    made->findings = findings();
    made->inventory = inventory();
    made->offers = {offer()};
    made->online_cpus = "0-63";
    made->records.assign(records_.begin(), records_.end());
    made->counters.losses[{"attach", "kubelet"}] = number_;
    made->counters.heals[{"healed", "ok"}] = number_;
    made->counters.events = {{"attach", 120}, {"load", 300}};
    made->counters.loss_duration.add(38'200);
    made->counters.heal_duration.add(12'000);
    board_.publish(made);
  }

  void show_few(bool in_trouble) {
    board_.publish(few_containers(in_trouble, number_));
    number_ += in_trouble ? kPast : 0;
  }

  // The cures of the worst finding are all needed.
  void show_steps() {
    const std::shared_ptr<report::Snapshot> made = few_containers(true, number_);
    std::vector<report::Finding> findings = *made->findings;
    findings.front().needs_all_cures = true;
    made->findings = std::move(findings);
    board_.publish(made);
    number_ += kPast;
  }

  void add_record(const std::string& title) {
    records_.push_back(shared(record_at(++number_, title, 0)));
    records_.pop_front();
    board_.publish(records_.back());
  }

 private:
  web::Board& board_;
  int containers_;
  std::int64_t started_ = kernel::wall_now();
  std::uint64_t number_ = 0;
  std::deque<report::BlameRecordPtr> records_;
};

void run_command(Stage& stage, const std::string& command, int count) {
  if (command == "loss") {
    stage.show(false, 5);
    stage.add_record("<i>worker-5</i>");
  } else if (command == "calm" || command == "trouble") {
    stage.show_few(command == "trouble");
  } else if (command == "steps") {
    stage.show_steps();
  } else if (command == "blind" || command == "usual") {
    stage.show(command == "blind");
  } else if (command == "storm") {
    for (int i = 0; i < count; ++i) {
      stage.add_record("stormy");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  web::Board board;
  Stage stage(board, argc > 1 ? std::stoi(argv[1]) : 1000);
  stage.show();
  const Result<std::unique_ptr<web::Server>> server =
      web::Server::start({argc > 2 ? argv[2] : "127.0.0.1:0", ""}, board);
  if (!server) {
    std::cerr << server.error().message << "\n";
    return 1;
  }
  std::cout << (*server)->address() << std::endl;
  for (std::string command; std::cin >> command && command != "quit";) {
    int count = 0;
    if (command == "storm") {
      std::cin >> count;
    }
    run_command(stage, command, count);
    std::cout << "done" << std::endl;
  }
  return 0;
}
