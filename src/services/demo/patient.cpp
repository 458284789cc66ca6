#include "services/demo/patient.h"

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
#include "core/container/mount.h"
#include "core/device/oci_rules.h"
#include "kernel/apply.h"
#include "kernel/command.h"
#include "kernel/container_node.h"
#include "kernel/device_v2.h"
#include "kernel/file.h"

namespace hf::demo {
namespace {

using container::Hierarchy;
using std::chrono::milliseconds;

constexpr milliseconds kRuntimeLimit{20'000};
constexpr milliseconds kNodeLimit{2'000};
constexpr std::uint32_t kNvidiaMajor = 195;
constexpr const char* kInside = "/demo";  // where our own files lie in the container
constexpr const char* kTally = "/demo/tally";
constexpr const char* kCgroups = "/sys/fs/cgroup";

device::Rule rule_of(const device::Device& device, device::Access access) {
  return {{device.kind, device::Span{device.major, device.major}, device::Span{device.minor, device.minor}}, access};
}

// What every runtime lets every container do.
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

// Every place where a hierarchy is mounted as a whole.
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

// A node that somebody made by hand has no GPU behind it.
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

Result<LedgerFolder> LedgerFolder::make() {
  LedgerFolder made;
  const std::string folder = ledger::kFolder;
  for (const std::string& path : {folder.substr(0, folder.rfind('/')), folder}) {
    if (::mkdir(path.c_str(), 0755) == 0) {
      made.made_.insert(made.made_.begin(), path);
    } else if (errno != EEXIST) {
      return fail_errno(errno, "make " + path);
    }
  }
  return made;
}

LedgerFolder::~LedgerFolder() {
  for (const std::string& path : made_) {
    ::rmdir(path.c_str());  // where nobody else has put anything meanwhile
  }
}

Patient::Patient(const Surroundings& around, Hierarchy hierarchy)
    : around_(around), hierarchy_(hierarchy), id_(new_id(hierarchy)), folder_(around.folder + "/" + id_) {}

Result<std::unique_ptr<Patient>> Patient::start(const Surroundings& around, Hierarchy hierarchy,
                                                const std::vector<Runtime>& runtimes) {
  std::unique_ptr<Patient> patient(new Patient(around, hierarchy));
  TRY(patient->prepare());
  for (const Runtime& runtime : runtimes) {
    const Result<void> started = patient->start_with(runtime);
    if (started) {
      return patient;
    }
    patient->notes_.push_back(runtime.name + " " + runtime.version +
                              " cannot start it here: " + started.error().message);
    patient->remove_container();
    patient->runtime_.reset();
  }
  TRY(patient->start_by_ourselves());
  return patient;
}

Patient::~Patient() {
  remove_ledger();
  remove_container();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Patient::launcher() const { return runtime_ ? runtime_->name + " " + runtime_->version : "built-in"; }

const kernel::Cgroup& Patient::cgroup() const { return hierarchy_ == Hierarchy::v1 ? *cgroups_.v1 : *cgroups_.v2; }

Result<void> Patient::prepare() {
  if (::mkdir(folder_.c_str(), 0700) < 0 || ::mkdir((folder_ + "/rootfs").c_str(), 0755) < 0) {
    return fail_errno(errno, "make " + folder_);
  }
  tally_.emplace(TRY(Tally::create(folder_ + "/tally")));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    return fail_errno(errno, "make a pipe");
  }
  life_inside_ = kernel::Fd(ends[0]);
  life_ = kernel::Fd(ends[1]);
  program_ = TRY(kernel::own_program_in(kInside));
  program_.files.push_back({folder_ + "/tally", kTally, kernel::BoundFile::Use::writable});
  program_.words.insert(program_.words.end(), {"demo-inside", kTally, around_.gpu.nodes.front().path});
  return {};
}

std::vector<std::string> Patient::runtime_words(const std::vector<std::string>& more) const {
  std::vector<std::string> words = {runtime_->program, "--root", "/run/" + runtime_->name};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// On a machine with both hierarchies a runtime takes v1, and crun takes neither: each is shown the one that is meant.
std::function<bool()> Patient::runtime_view() const {
  const kernel::Host& host = around_.host;
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
    // Whatever v1 cgroup we are in ourselves has no say about the container.
    return write_zero(v1 + "/cgroup.procs") && ::mount("none", kCgroups, "cgroup2", 0, nullptr) == 0;
  };
}

Result<void> Patient::start_with(const Runtime& runtime) {
  runtime_ = runtime;
  oci::NewSpec spec;
  spec.words = program_.words;
  spec.cgroups_path = cgroup_path();
  for (const kernel::BoundFile& file : program_.files) {
    spec.mounts.push_back({file.source, file.path, file.use == kernel::BoundFile::Use::writable});
  }
  std::ofstream(folder_ + "/config.json") << oci::write_spec(spec);
  kernel::Command command;
  command.words = runtime_words({"run", "-d", "--bundle", folder_, "--pid-file", folder_ + "/pid", id_});
  command.input = life_inside_.get();
  command.before = runtime_view();
  TRY(kernel::run(command, kRuntimeLimit));
  const std::string text = TRY(kernel::read_regular_file(folder_ + "/pid"));
  const std::optional<std::uint32_t> pid = parse_number<std::uint32_t>(trim(text));
  if (!pid) {
    return fail(std::errc::invalid_argument, "it told no process id");
  }
  pid_ = {std::int32_t(*pid)};
  return hold_cgroups();
}

Result<void> Patient::start_by_ourselves() {
  const kernel::Host& host = around_.host;
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
    TRY(kernel::attach_program(around_.filters, cgroup, TRY(bpf::generate(device::Table::of_rules(rules)))));
    if (host.v1) {
      others.push_back(TRY(kernel::open_root(host, Hierarchy::v1)));
    }
  } else {
    TRY(kernel::write_text(cgroup.directory.get(), "devices.deny", "a"));
    for (const device::Rule& rule : rules) {
      TRY(kernel::write_text(cgroup.directory.get(), "devices.allow", to_string(rule)));
    }
  }
  kernel::Enclosure enclosure;
  enclosure.words = program_.words;
  enclosure.files = program_.files;
  enclosure.root = folder_ + "/rootfs";
  enclosure.cgroups = {&cgroup};
  for (const kernel::Cgroup& other : others) {
    enclosure.cgroups.push_back(&other);
  }
  enclosure.input = life_inside_.get();
  pid_ = TRY(kernel::contain(enclosure));
  is_our_child_ = true;
  return hold_cgroups();
}

Result<void> Patient::hold_cgroups() {
  cgroups_ = TRY(kernel::open_cgroups_of(around_.host, pid_));
  const std::optional<kernel::Cgroup>& own = hierarchy_ == Hierarchy::v1 ? cgroups_.v1 : cgroups_.v2;
  if (!own || own->path.is_root()) {
    return fail(std::errc::no_such_device, "it has no cgroup of its own");
  }
  if (hierarchy_ == Hierarchy::v2) {
    kernel::Bpf& bpf = around_.filters.bpf();
    const kernel::AttachedPrograms attached = TRY(bpf.query(*own, kernel::Reach::own));
    if (attached.ids.empty()) {
      return fail(std::errc::no_such_device, "its cgroup has no filter");
    }
    first_filter_.emplace(TRY(bpf.open(attached.ids.front())));
  }
  return {};
}

Result<void> Patient::give_gpu() {
  container::Container it;
  it.init = pid_;
  it.started_ticks = TRY(kernel::read_process(around_.host, pid_)).started_at;
  const kernel::ContainerHandle handle = TRY(kernel::ContainerHandle::open(around_.host, it));
  container::Change change;
  for (const container::WantedNode& node : around_.gpu.nodes) {
    TRY(kernel::make_node_in(around_.host, handle, {node.path, *node.claimed, {}}, kNodeLimit));
    change.rules.push_back(rule_of(*node.claimed, node.access));
  }
  const kernel::Applied applied = TRY(kernel::apply(around_.filters, cgroups_, change));
  if (!applied.holds) {
    return fail(std::errc::operation_canceled, "somebody takes the GPU from " + id_ + " already");
  }
  return write_ledger();
}

Result<void> Patient::write_ledger() const {
  const std::string folder = ledger::kFolder;
  ledger::Entry entry;
  entry.container = {id_};
  entry.cgroup = cgroup().path.text;
  entry.nodes = around_.gpu.nodes;
  const std::string file = folder + "/" + id_ + ".json";
  const std::string draft = folder + "/." + id_ + ".new";
  std::ofstream(draft) << ledger::write_entry(entry);
  if (::chmod(draft.c_str(), 0600) < 0 || ::rename(draft.c_str(), file.c_str()) < 0) {
    return fail_errno(errno, "write " + file);
  }
  return {};
}

void Patient::remove_ledger() const {
  const std::string folder = ledger::kFolder;
  ::unlink((folder + "/" + id_ + ".json").c_str());
  ::unlink((folder + "/." + id_ + ".new").c_str());
}

void Patient::remove_container() {
  if (runtime_) {
    kernel::Command command;
    command.words = runtime_words({"delete", "-f", id_});
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

void Patient::remove_cgroups() const {
  constexpr int kMostTries = 200;  // a process that ends holds them for a moment
  for (const std::string& point : cgroup_points(around_.host)) {
    for (const std::string& path : {point + cgroup_path(), point + parent_path()}) {
      for (int tries = 0; tries < kMostTries && ::rmdir(path.c_str()) < 0 && errno == EBUSY; ++tries) {
        ::usleep(10'000);
      }
    }
  }
}

}  // namespace hf::demo
