#include "services/demo/workload.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/oci/new_spec.h"
#include "core/base/text.h"
#include "core/container/cgroup/mount.h"
#include "core/device/oci_rules.h"
#include "kernel/cgroup/apply.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/container/container_node.h"
#include "kernel/files/file.h"
#include "kernel/process/command.h"

namespace hf::demo {
namespace {

constexpr std::chrono::seconds kRetryLimit{10};

using container::Hierarchy;
using std::chrono::milliseconds;

constexpr milliseconds kRuntimeLimit{20'000};
constexpr milliseconds kNodeLimit{2'000};
constexpr std::uint32_t kNvidiaMajor = 195;
constexpr const char* kInside = "/demo";  // the directory of our own files in the container
constexpr const char* kTally = "/demo/tally";
constexpr const char* kCgroups = "/sys/fs/cgroup";

device::Rule rule_of(const device::Device& device, device::Access access) {
  return {{device.kind, device::Span{device.major, device.major}, device::Span{device.minor, device.minor}}, access};
}

// The rules that every runtime gives to every container.
device::RuleSet rules_of_every_container() {
  device::RuleSet rules;
  for (const char* text : {"c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm",
                           "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm"}) {
    rules.push_back(*device::parse_rule(text));
  }
  return rules;
}

std::string new_id(Hierarchy hierarchy) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string id = "hf-demo-";
  for (int i = 0; i < 8; ++i) {
    id += kDigits[random() % kDigits.size()];
  }
  return id + (hierarchy == Hierarchy::v1 ? "-v1" : "-v2");
}

// Every mount point of a whole hierarchy.
std::vector<std::string> cgroup_points(const kernel::Host& host) {
  const Result<std::string> text = kernel::read_text(host.root.get(), "proc/self/mountinfo");
  std::vector<std::string> points;
  for (const container::Mount& mount : container::parse_mountinfo(text.value_or(""))) {
    if (mount.type.starts_with("cgroup") && mount.root == "/") {
      points.push_back(mount.point);
    }
  }
  return points;
}

// Without the driver, a device node that was created by hand has no GPU behind it.
bool has_nvidia_driver(const kernel::Host& host) {
  const std::string text = kernel::read_text(host.root.get(), "proc/devices").value_or("");
  return text.find(" nvidia\n") != std::string::npos || text.find(" nvidia-frontend\n") != std::string::npos;
}

bool write_zero(const std::string& file) {
  const kernel::Fd procs(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return procs && ::write(procs.get(), "0", 1) == 1;
}

}  // namespace

Gpu find_gpu(const kernel::Host& host) {
  constexpr device::Access kReadWrite = device::Access::read | device::Access::write;
  Gpu gpu;
  const int most = has_nvidia_driver(host) ? 16 : 0;
  for (int number = 0; number < most && gpu.nodes.empty(); ++number) {
    const std::string path = "/dev/nvidia" + std::to_string(number);
    if (const std::optional<kernel::NodeOnHost> node = kernel::read_node(host, path)) {
      gpu.nodes.push_back({path, node->device, kReadWrite});
    }
  }
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}) {
    const std::optional<kernel::NodeOnHost> node = gpu.nodes.empty() ? std::nullopt : kernel::read_node(host, path);
    if (node) {
      gpu.nodes.push_back({path, node->device, kReadWrite});
    }
  }
  if (gpu.nodes.empty()) {
    gpu.is_stand_in = true;
    gpu.nodes = {{"/dev/nvidia0", device::Device{device::Kind::character, kNvidiaMajor, 0}, kReadWrite},
                 {"/dev/nvidiactl", device::Device{device::Kind::character, kNvidiaMajor, 255}, kReadWrite}};
  }
  return gpu;
}

Workload::Workload(const DemoSetup& setup, Hierarchy hierarchy)
    : setup_(setup), hierarchy_(hierarchy), id_(new_id(hierarchy)), directory_(setup.directory + "/" + id_) {}

Result<std::unique_ptr<Workload>> Workload::start(const DemoSetup& setup, Hierarchy hierarchy,
                                                  const std::vector<Runtime>& runtimes) {
  std::unique_ptr<Workload> workload(new Workload(setup, hierarchy));
  TRY(workload->prepare());
  for (const Runtime& runtime : runtimes) {
    const Result<void> started = workload->start_with(runtime);
    if (started) {
      return workload;
    }
    workload->notes_.push_back(runtime.name + " " + runtime.version +
                               " cannot start it here: " + started.error().message);
    workload->remove_container();
    workload->runtime_.reset();
  }
  TRY(workload->start_without_runtime());
  return workload;
}

Workload::~Workload() {
  ledger::remove_entry(setup_.host, {id_});
  ledger::remove_empty_directory(setup_.host);
  remove_container();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string Workload::launcher() const { return runtime_ ? runtime_->name + " " + runtime_->version : "built-in"; }

const kernel::Cgroup& Workload::cgroup() const { return hierarchy_ == Hierarchy::v1 ? *cgroups_.v1 : *cgroups_.v2; }

Result<void> Workload::prepare() {
  if (::mkdir(directory_.c_str(), 0700) < 0 || ::mkdir((directory_ + "/rootfs").c_str(), 0755) < 0) {
    return fail_errno(errno, "make " + directory_);
  }
  tally_.emplace(TRY(Tally::create(directory_ + "/tally")));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    return fail_errno(errno, "make a pipe");
  }
  stdin_inside_ = kernel::Fd(ends[0]);
  stdin_writer_ = kernel::Fd(ends[1]);
  program_ = TRY(kernel::own_program_in(kInside));
  program_.files.push_back({directory_ + "/tally", kTally, kernel::BoundFile::Use::writable});
  program_.arguments.insert(program_.arguments.end(), {"demo-inside", kTally, setup_.gpu.nodes.front().path});
  return {};
}

std::vector<std::string> Workload::runtime_arguments(const std::vector<std::string>& arguments) const {
  std::vector<std::string> all = {runtime_->program, "--root", "/run/" + runtime_->name};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// On a machine with both hierarchies runc uses v1, and crun works with neither: each runtime is shown only the
// hierarchy of this container.
std::function<bool()> Workload::runtime_view() const {
  const kernel::Host& host = setup_.host;
  const bool is_hybrid = host.v1 && host.v2;
  if (!is_hybrid || (hierarchy_ == Hierarchy::v1 && runtime_->name != "crun")) {
    return {};
  }
  const std::string v1 = host.v1->point;
  const std::string v2 = host.v2->point;
  const Hierarchy hierarchy = hierarchy_;
  return [v1, v2, hierarchy] {
    if (::unshare(CLONE_NEWNS) < 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) {
      return false;
    }
    if (hierarchy == Hierarchy::v1) {
      return ::umount2(v2.c_str(), MNT_DETACH) == 0;
    }
    // Leaves our own v1 cgroup, so that its rules do not apply to the container.
    return write_zero(v1 + "/cgroup.procs") && ::mount("none", kCgroups, "cgroup2", 0, nullptr) == 0;
  };
}

Result<void> Workload::start_with(const Runtime& runtime) {
  runtime_ = runtime;
  oci::NewSpec spec;
  spec.arguments = program_.arguments;
  spec.cgroups_path = cgroup_path();
  for (const kernel::BoundFile& file : program_.files) {
    spec.mounts.push_back({file.source, file.path, file.use == kernel::BoundFile::Use::writable});
  }
  std::ofstream(directory_ + "/config.json") << oci::render_spec(spec);
  kernel::Command command;
  command.arguments = runtime_arguments({"run", "-d", "--bundle", directory_, "--pid-file", directory_ + "/pid", id_});
  command.input = stdin_inside_.get();
  command.before = runtime_view();
  TRY(kernel::run(command, kRuntimeLimit));
  const std::string text = TRY(kernel::read_regular_file(directory_ + "/pid"));
  const std::optional<std::uint32_t> pid = parse_number<std::uint32_t>(trim(text));
  if (!pid) {
    return fail(std::errc::invalid_argument, "it reported no process id");
  }
  pid_ = {std::int32_t(*pid)};
  return hold_cgroups();
}

Result<void> Workload::start_without_runtime() {
  const kernel::Host& host = setup_.host;
  const std::string& point = host.mount_of(hierarchy_)->point;
  for (const std::string& path : {parent_path(), cgroup_path()}) {
    if (::mkdir((point + path).c_str(), 0755) < 0) {
      return fail_errno(errno, "make the cgroup " + point + path);
    }
  }
  const kernel::Cgroup cgroup = TRY(kernel::open_cgroup(host, hierarchy_, {cgroup_path()}));
  const device::RuleSet rules = rules_of_every_container();
  std::vector<kernel::Cgroup> others;
  if (hierarchy_ == Hierarchy::v2) {
    TRY(kernel::attach_program(setup_.filters, cgroup, TRY(bpf::generate(device::Table::of_rules(rules)))));
    if (host.v1) {
      others.push_back(TRY(kernel::open_root(host, Hierarchy::v1)));
    }
  } else {
    TRY(kernel::write_text(cgroup.directory.get(), "devices.deny", "a"));
    for (const device::Rule& rule : rules) {
      TRY(kernel::write_text(cgroup.directory.get(), "devices.allow", to_string(rule)));
    }
  }
  kernel::MinimalContainer wanted;
  wanted.arguments = program_.arguments;
  wanted.files = program_.files;
  wanted.root = directory_ + "/rootfs";
  wanted.cgroups = {&cgroup};
  for (const kernel::Cgroup& other : others) {
    wanted.cgroups.push_back(&other);
  }
  wanted.input = stdin_inside_.get();
  pid_ = TRY(kernel::start_minimal_container(wanted));
  is_our_child_ = true;
  return hold_cgroups();
}

Result<void> Workload::hold_cgroups() {
  cgroups_ = TRY(kernel::open_cgroups_of(setup_.host, pid_));
  const std::optional<kernel::Cgroup>& own = hierarchy_ == Hierarchy::v1 ? cgroups_.v1 : cgroups_.v2;
  if (!own || own->path.is_root()) {
    return fail(std::errc::no_such_device, "it has no cgroup of its own");
  }
  if (hierarchy_ == Hierarchy::v2) {
    kernel::Bpf& bpf = setup_.filters.bpf();
    const kernel::AttachedPrograms attached = TRY(bpf.query(*own, kernel::Reach::own));
    if (attached.ids.empty()) {
      return fail(std::errc::no_such_device, "its cgroup has no filter");
    }
    first_filter_.emplace(TRY(bpf.open(attached.ids.front())));
  }
  return {};
}

Result<void> Workload::give_gpu() {
  container::Container it;
  it.init = pid_;
  it.started_ticks = TRY(kernel::read_process(setup_.host, pid_)).started_at;
  const kernel::ContainerHandle handle = TRY(kernel::ContainerHandle::open(setup_.host, it));
  container::Change change;
  for (const container::WantedNode& node : setup_.gpu.nodes) {
    TRY(kernel::make_node_in(setup_.host, handle, {node.path, *node.claimed, {}}, kNodeLimit));
    change.rules.push_back(rule_of(*node.claimed, node.access));
  }
  const kernel::Applied applied = TRY(kernel::apply(setup_.filters, cgroups_, change, kRetryLimit));
  if (!applied.holds) {
    return fail(std::errc::operation_canceled, "another process already takes the GPU from " + id_);
  }
  ledger::Entry entry;
  entry.container = {id_};
  entry.cgroup = cgroup().path.text;
  entry.nodes = setup_.gpu.nodes;
  return ledger::save_entry(setup_.host, entry);
}

void Workload::remove_container() {
  if (runtime_) {
    kernel::Command command;
    command.arguments = runtime_arguments({"delete", "-f", id_});
    command.before = runtime_view();
    (void)kernel::run(command, kRuntimeLimit);
  }
  if (is_our_child_) {
    ::kill(pid_.value, SIGKILL);
    ::waitpid(pid_.value, nullptr, 0);
    is_our_child_ = false;
  }
  first_filter_.reset();
  cgroups_ = {};
  remove_cgroups();
}

void Workload::remove_cgroups() const {
  constexpr int kMostTries = 200;  // a process that ends holds them for a moment
  for (const std::string& point : cgroup_points(setup_.host)) {
    for (const std::string& path : {point + cgroup_path(), point + parent_path()}) {
      for (int tries = 0; tries < kMostTries && ::rmdir(path.c_str()) < 0 && errno == EBUSY; ++tries) {
        ::usleep(10'000);
      }
    }
  }
}

}  // namespace hf::demo
