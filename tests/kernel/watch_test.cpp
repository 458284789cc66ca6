// Tests of every tier on the real kernel: changes of rules by other processes are reported with their writer, and calls
// that change nothing are not.
#include "kernel/watch/watch.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bpf/generate.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel_test.h"

namespace hf::test {
namespace {

using container::Event;
using container::EventKind;
using container::Hierarchy;
using container::Tier;
using Lines = std::vector<std::string>;

constexpr const char* kName = "attacker";
constexpr std::size_t kLongestCommand = 240;  // TRACE_COMMAND
constexpr std::size_t kMostParents = 8;       // TRACE_PARENTS

std::string title_of(Hierarchy hierarchy) { return hierarchy == Hierarchy::v1 ? "v1" : "v2"; }

pid_t start_child(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, kName);
    ::_exit(work() ? 0 : 1);
  }
  return child;
}

bool has_ended_well(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

pid_t by_child(const std::function<bool()>& work) {
  const pid_t child = start_child(work);
  EXPECT_TRUE(has_ended_well(child)) << "the child could not do what the test is about";
  return child;
}

// By a process whose parent is not this one: cgroup events of our own children are not reported.
void by_grandchild(const std::function<bool()>& work) {
  by_child([&] { return has_ended_well(start_child(work)); });
}

// A mount that only the calling process sees; to be called in a child.
bool mount_privately(const char* type, const std::string& directory, const char* options) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", directory.c_str(), type, 0, options) == 0;
}

bool write_to(const std::string& path, const std::string& text) {
  const kernel::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == ssize_t(text.size());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string line_of(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\0')) {
    text.pop_back();
  }
  return text;
}

// "attach 12 instead of 11 flags 6", "write deny a"
std::string describe(const Event& event) {
  std::string text = to_string(event.kind);
  text += event.program ? " " + std::to_string(event.program->value) : "";
  text += event.replaced ? " instead of " + std::to_string(event.replaced->value) : "";
  text += event.flags != 0 ? " flags " + std::to_string(event.flags) : "";
  return text + (event.text.empty() ? "" : " " + event.text);
}

Lines describe(const std::vector<Event>& events) {
  Lines lines;
  std::ranges::transform(events, std::back_inserter(lines), [](const Event& event) { return describe(event); });
  return lines;
}

std::string line_for(const char* verb, const kernel::Program& program, const char* rest = "") {
  return std::string(verb) + " " + std::to_string(program.id.value) + rest;
}

std::string line_for(const char* verb, const kernel::Program& program, const kernel::Program& old,
                     const char* rest = "") {
  return line_for(verb, program) + " instead of " + std::to_string(old.id.value) + rest;
}

void expect_writer(const Event& event, pid_t pid) {
  EXPECT_EQ(event.writer.pid.value, pid);
  EXPECT_EQ(event.writer.name, kName);
  std::string command = read_file("/proc/self/cmdline").substr(0, kLongestCommand);
  std::ranges::replace(command = line_of(command), '\0', ' ');
  EXPECT_EQ(event.writer.command, command) << "a child has the command line of its parent";
  Lines reported_parents;
  for (const container::Ancestor& parent : event.writer.parents) {
    reported_parents.push_back(std::to_string(parent.pid.value) + " " + parent.name);
  }
  Lines parents;
  for (pid_t parent = ::getpid(); parent > 0 && parents.size() < kMostParents;) {
    const std::string directory = "/proc/" + std::to_string(parent);
    parents.push_back(std::to_string(parent) + " " + line_of(read_file(directory + "/comm")));
    const std::string status = read_file(directory + "/status");
    parent = std::stoi(status.substr(status.find("PPid:") + 5));
  }
  EXPECT_EQ(reported_parents, parents);
  EXPECT_LE(event.at, kernel::monotonic_now());
  EXPECT_GT(event.at + 60'000'000'000U, kernel::monotonic_now());
}

// Each test checks what it needs of the host: in tests/vm there is often one hierarchy only.
class WatchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    Result<kernel::Host> host = kernel::open_host();
    if (!host) {
      GTEST_SKIP() << host.error().message;
    }
    host_ = *std::move(host);
    bpf_ = kernel::open_kernel_bpf();
  }

  void open(std::optional<Tier> at_most) { watch_.emplace(kernel::Watch::open(*host_, *bpf_, at_most)); }

  bool has(Hierarchy hierarchy) const { return host_ && host_->mount_of(hierarchy); }

  std::string why() const {
    std::string text;
    for (const std::string& line : watch_->tiers().why) {
      text += line + "; ";
    }
    return text;
  }

  kernel::Program load(const char* line) {
    const device::RuleSet rules{*device::parse_rule(line)};
    return *bpf_->load(*bpf::generate(device::Table::of_rules(rules)));
  }

  std::vector<Event> take() {
    std::vector<Event> events;
    watch_->take(events);
    was_lost_ = was_lost_ || std::ranges::find(events, EventKind::lost, &Event::kind) != events.end();
    return events;
  }

  // Other processes of this host cause events meanwhile.
  template <typename Condition>
  std::vector<Event> take_if(const Condition& condition) {
    std::vector<Event> events = take();
    std::erase_if(events, [&](const Event& event) { return !condition(event); });
    return events;
  }
  std::vector<Event> take_of(const kernel::Cgroup& cgroup) {
    return take_if(
        [&](const Event& event) { return event.cgroup == cgroup.id && event.hierarchy == cgroup.hierarchy; });
  }
  std::vector<Event> take_by(pid_t pid) {
    return take_if([&](const Event& event) { return event.writer.pid.value == pid; });
  }

  std::vector<Event> sweep() {
    std::vector<Event> events;
    watch_->sweep(events);
    std::erase_if(events,
                  [](const Event& event) { return !event.cgroup; });  // other processes create cgroups meanwhile
    return events;
  }

  kernel::CgroupsPtr add(const ScratchCgroup& scratch, pid_t first = ::getpid()) {
    auto cgroups = std::make_shared<const kernel::CgroupsOfProcess>(scratch.open());
    const Result<kernel::ProcessHandle> held = kernel::hold_process(*host_, container::Pid{first});
    const kernel::ProcessHandle ended{container::Pid{first}, kernel::Fd()};
    watch_->add(cgroups, held ? *held : ended);
    return cgroups;
  }

  bool becomes_readable() const {
    pollfd waited{watch_->descriptor(), POLLIN, 0};
    return ::poll(&waited, 1, 10'000) == 1;
  }

  std::optional<kernel::Host> host_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::optional<kernel::Watch> watch_;
  bool was_lost_ = false;
  NodeDirectory directory_;
};

TEST_F(WatchTest, TakesTheBestTierThatOpensHere) {
  open(std::nullopt);
  const container::Tiers& tiers = watch_->tiers();
  const bool tracepoints = kernel::Trace::open().has_value();
  EXPECT_EQ(tiers.v2 == Tier::tracepoints, tracepoints) << why();
  EXPECT_EQ(tracepoints, why().find("tracepoints: ") == std::string::npos)
      << "the reason is given for a tier that cannot be used";
  std::printf("tiers: v2 %s, v1 %s; %s\n", to_string(tiers.v2).c_str(), to_string(tiers.v1).c_str(), why().c_str());
}

// ---- Tracepoints of bpf(2) ------------------------------------------------------------------------------------------

class Tracer : public WatchTest, public testing::WithParamInterface<Tier> {
 protected:
  void SetUp() override {
    WatchTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    open(GetParam());
    if (watch_->tiers().v2 != GetParam()) {
      GTEST_SKIP() << why();
    }
  }
};

class TracerOfPrograms : public Tracer {
 protected:
  void SetUp() override {
    Tracer::SetUp();
    if (!IsSkipped() && !has(Hierarchy::v2)) {
      GTEST_SKIP() << "needs cgroup v2";
    }
  }
};

std::string name_of(const testing::TestParamInfo<Tier>& info) { return to_string(info.param); }
INSTANTIATE_TEST_SUITE_P(Tier, TracerOfPrograms, testing::Values(Tier::tracepoints), name_of);

TEST_P(TracerOfPrograms, ReportsAttachReplaceAndDetach) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program first = load("c 1:3 rw");
  const kernel::Program second = load("c 1:5 rw");
  const pid_t attacker = by_child([&] {
    return bpf_->attach(cgroup, first, kernel::AttachAlongside{}) &&
           bpf_->attach(cgroup, second, kernel::AttachReplacing{first}) && bpf_->detach(cgroup, second, 0);
  });
  EXPECT_TRUE(becomes_readable());
  const std::vector<Event> events = take_of(cgroup);
  EXPECT_EQ(describe(events), (Lines{line_for("attach", first, " flags 2"),
                                     line_for("attach", second, first, " flags 6"), line_for("detach", second)}));
  for (const Event& event : events) {
    expect_writer(event, attacker);
  }
}

TEST_P(TracerOfPrograms, ReportsProgramsAttachedAlone) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program first = load("c 1:3 rw");
  const kernel::Program second = load("c 1:5 rw");
  const kernel::AttachAlone how{container::Attachment::overridable, 0};
  by_child([&] {
    return bpf_->attach(cgroup, first, how) && bpf_->attach(cgroup, second, how) &&
           ::bpf_prog_detach(cgroup.directory.get(), BPF_CGROUP_DEVICE) == 0;  // names no program
  });
  EXPECT_EQ(describe(take_of(cgroup)),
            (Lines{line_for("attach", first, " flags 1"), line_for("attach", second, " flags 1"), "detach"}));
}

TEST_P(TracerOfPrograms, ReportsLinks) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program first = load("c 1:3 rw");
  const kernel::Program second = load("c 1:5 rw");
  const pid_t attacker = by_child([&] {
    const int link = ::bpf_link_create(first.fd.get(), cgroup.directory.get(), BPF_CGROUP_DEVICE, nullptr);
    bpf_link_update_opts expecting{};
    expecting.sz = sizeof(expecting);
    expecting.flags = BPF_F_REPLACE;
    expecting.old_prog_fd = std::uint32_t(second.fd.get());
    return ::bpf_link_update(link, second.fd.get(), nullptr) == 0 &&
           ::bpf_link_update(link, first.fd.get(), &expecting) == 0 && ::bpf_link_detach(link) == 0;
  });
  const std::vector<Event> events = take_of(cgroup);
  EXPECT_EQ(describe(events), (Lines{line_for("attach", first, " flags 2"), line_for("attach", second, first),
                                     line_for("attach", first, second), line_for("detach", first)}));
  for (const Event& event : events) {
    expect_writer(event, attacker);
  }
}

TEST_P(TracerOfPrograms, ReportsALinkThatIsClosedOrASweepFindsIt) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program program = load("c 1:3 rw");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = start_child([&] {
    const int link = ::bpf_link_create(program.fd.get(), cgroup.directory.get(), BPF_CGROUP_DEVICE, nullptr);
    return link >= 0 && ::write(ready[1], "x", 1) == 1 && ::pause() == 0;
  });
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  EXPECT_EQ(describe(take_of(cgroup)), Lines{line_for("attach", program, " flags 2")});
  add(scratch);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_EQ(describe(take_of(cgroup)), Lines{}) << "closing is no call of bpf(2)";
  EXPECT_EQ(describe(sweep()), Lines{"found changed"});
}

TEST_P(TracerOfPrograms, ReportsAPinnedProgramThatWasLoadedLongAgo) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program program = load("c 1:3 rw");
  const pid_t attacker = by_child([&] {
    const std::string pin = directory_.path() + "/pin";
    if (!mount_privately("bpf", directory_.path(), nullptr) || ::bpf_obj_pin(program.fd.get(), pin.c_str()) < 0) {
      return false;
    }
    const int target = cgroup.directory.get();
    const int again = ::bpf_obj_get(pin.c_str());
    return ::bpf_prog_attach(again, target, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI) == 0 &&
           ::bpf_prog_detach2(again, target, BPF_CGROUP_DEVICE) == 0 &&
           ::bpf_prog_attach(again, target, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI) == 0;
  });
  const std::string attached = line_for("attach", program, " flags 2");
  EXPECT_EQ(describe(take_by(attacker)), (Lines{attached, line_for("detach", program), attached}));
}

TEST_P(TracerOfPrograms, DoesNotReportChangesByThisProcess) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program first = load("c 1:3 rw");
  const kernel::Program second = load("c 1:5 rw");
  ASSERT_TRUE(bpf_->attach(cgroup, first, kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(cgroup, second, kernel::AttachReplacing{first}));
  ASSERT_TRUE(bpf_->detach(cgroup, second, 0));
  {
    const kernel::Fd link(::bpf_link_create(first.fd.get(), cgroup.directory.get(), BPF_CGROUP_DEVICE, nullptr));
    ASSERT_EQ(::bpf_link_update(link.get(), second.fd.get(), nullptr), 0) << std::strerror(errno);
  }
  EXPECT_EQ(describe(take_of(cgroup)), Lines{});
  EXPECT_EQ(describe(take_by(::getpid())), Lines{});
}

TEST_P(TracerOfPrograms, DoesNotReportCallsThatFail) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program first = load("c 1:3 rw");
  const kernel::Program second = load("c 1:5 rw");
  const kernel::Fd link(::bpf_link_create(first.fd.get(), cgroup.directory.get(), BPF_CGROUP_DEVICE, nullptr));
  const pid_t attacker = by_child([&] {
    const int target = cgroup.directory.get();
    struct bpf_prog_attach_opts replacing{};
    replacing.sz = sizeof(replacing);
    replacing.flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE;
    replacing.replace_prog_fd = second.fd.get();
    bpf_link_update_opts expecting{};
    expecting.sz = sizeof(expecting);
    expecting.flags = BPF_F_REPLACE;
    expecting.old_prog_fd = std::uint32_t(second.fd.get());
    const bpf_insn only_exit{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
    return ::bpf_prog_attach_opts(first.fd.get(), target, BPF_CGROUP_DEVICE, &replacing) < 0 &&
           ::bpf_prog_attach(first.fd.get(), STDIN_FILENO, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI) < 0 &&
           ::bpf_prog_detach2(second.fd.get(), target, BPF_CGROUP_DEVICE) < 0 &&
           ::bpf_link_update(link.get(), first.fd.get(), &expecting) < 0 &&
           ::bpf_link_create(-1, target, BPF_CGROUP_DEVICE, nullptr) < 0 &&
           ::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, "refused", "GPL", &only_exit, 1, nullptr) < 0;
  });
  EXPECT_EQ(describe(take_by(attacker)), Lines{});
}

TEST_P(TracerOfPrograms, DoesNotReportProgramsThatAreNotAboutDevices) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const pid_t attacker = by_child([&] {
    const bpf_insn pass[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 1},
                             {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    const int target = cgroup.directory.get();
    const int program = ::bpf_prog_load(BPF_PROG_TYPE_CGROUP_SKB, "other", "GPL", pass, std::size(pass), nullptr);
    const int link = ::bpf_link_create(program, target, BPF_CGROUP_INET_INGRESS, nullptr);
    return ::bpf_prog_attach(program, target, BPF_CGROUP_INET_EGRESS, BPF_F_ALLOW_MULTI) == 0 &&
           ::bpf_prog_detach2(program, target, BPF_CGROUP_INET_EGRESS) == 0 &&
           ::bpf_link_update(link, program, nullptr) == 0 && ::bpf_link_detach(link) == 0;
  });
  EXPECT_EQ(describe(take_by(attacker)), Lines{});
}

TEST_P(TracerOfPrograms, ReportsLostEventsAndASweepThenFindsWhatChanged) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program program = load("c 1:3 rw");
  add(scratch);
  by_child([&] {
    bool done = true;
    for (int i = 0; i < 2000 && done; ++i) {
      done = bpf_->attach(cgroup, program, kernel::AttachAlongside{}) && bpf_->detach(cgroup, program, 0);
    }
    return done && bpf_->attach(cgroup, program, kernel::AttachAlongside{});
  });
  const auto lost = [](const Event& event) { return event.kind == EventKind::lost; };
  EXPECT_EQ(take_if(lost).size(), 1U);
  EXPECT_EQ(describe(sweep()), Lines{line_for("found changed", program)});
  EXPECT_EQ(take_if(lost).size(), 0U) << "reported once";
  by_child([&] { return bool(bpf_->detach(cgroup, program, 0)); });
  EXPECT_EQ(describe(take_of(cgroup)), Lines{line_for("detach", program)}) << "events are reported again";
}

// ---- Cgroups that come and go ---------------------------------------------------------------------------------------

class CgroupsOf : public Tracer {
 protected:
  void expect_reported(Hierarchy hierarchy) {
    if (!has(hierarchy)) {
      GTEST_SKIP() << "needs cgroup " << title_of(hierarchy);
    }
    // Another process may create more cgroups at once than fit into the event buffer.
    std::vector<Lines> seen = create_and_remove(hierarchy);
    for (int tries = 0; was_lost_ && tries < 10; ++tries) {
      was_lost_ = false;
      seen = create_and_remove(hierarchy);
    }
    const std::string path = " " + path_;
    EXPECT_EQ(seen,
              (std::vector<Lines>{
                  {"cgroup made" + path}, {"cgroup joined" + path}, {}, {"cgroup made" + path, "cgroup gone" + path}}))
        << "created; joined; removed by this process; created and removed";
  }

 private:
  std::vector<Lines> create_and_remove(Hierarchy hierarchy) {
    const ScratchCgroup scratch(*host_, hierarchy);
    const std::string made = scratch.directory() + "/made";
    by_grandchild([&] { return ::mkdir(made.c_str(), 0755) == 0; });
    const Result<kernel::CgroupsOfProcess> opened = kernel::open_cgroups_at(*host_, made);
    if (!opened) {
      return {{opened.error().message}};
    }
    const kernel::Cgroup& cgroup = hierarchy == Hierarchy::v1 ? *opened->v1 : *opened->v2;
    path_ = cgroup.path.text;
    EXPECT_TRUE(becomes_readable());
    std::vector<Lines> seen{describe(take_of(cgroup))};
    by_grandchild([&] { return write_to(made + "/cgroup.procs", "0"); });
    seen.push_back(describe(take_of(cgroup)));
    int tries = 0;
    while (::rmdir(made.c_str()) < 0 && errno == EBUSY && ++tries < 500) {
      ::usleep(10'000);
    }
    seen.push_back(describe(take_of(cgroup)));
    by_grandchild([&] { return ::mkdir(made.c_str(), 0755) == 0 && ::rmdir(made.c_str()) == 0; });
    seen.push_back(describe(take_if([&](const Event& event) { return event.writer.name == kName; })));
    return seen;
  }

  std::string path_;
};
INSTANTIATE_TEST_SUITE_P(Tier, CgroupsOf, testing::Values(Tier::tracepoints), name_of);

TEST_P(CgroupsOf, V2AreReported) { expect_reported(Hierarchy::v2); }
TEST_P(CgroupsOf, V1AreReported) { expect_reported(Hierarchy::v1); }

TEST_P(CgroupsOf, OtherHierarchiesOfV1AreNotReported) {
  const std::string made = "/sys/fs/cgroup/freezer/hf-test-" + std::to_string(::getpid());
  if (::access("/sys/fs/cgroup/freezer/cgroup.procs", F_OK) != 0) {
    GTEST_SKIP() << "there is no other v1 hierarchy";
  }
  by_grandchild([&] { return ::mkdir(made.c_str(), 0755) == 0 && ::rmdir(made.c_str()) == 0; });
  EXPECT_EQ(describe(take_if([](const Event& event) { return event.writer.name == kName; })), Lines{});
}

// ---- Writes to v1 files ---------------------------------------------------------------------------------------------

// Changes a sysctl for the duration of a test.
class ShortQueue {
 public:
  ShortQueue(std::string path, const std::string& value) : path_(std::move(path)), before_(read_file(path_)) {
    is_set_ = !before_.empty() && write_to(path_, value);
  }
  ShortQueue(const ShortQueue&) = delete;
  ShortQueue& operator=(const ShortQueue&) = delete;
  ~ShortQueue() { write_to(path_, before_); }
  [[nodiscard]] bool is_set() const { return is_set_; }

 private:
  std::string path_;
  std::string before_;
  bool is_set_ = false;
};

class WritesToV1 : public WatchTest, public testing::WithParamInterface<Tier> {
 protected:
  void SetUp() override {
    WatchTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    open(GetParam());
    if (!has(Hierarchy::v1) || watch_->tiers().v1 != GetParam()) {
      GTEST_SKIP() << (has(Hierarchy::v1) ? why() : "needs cgroup v1");
    }
  }

  // A tier that sees files does not see what is written.
  static std::string line_for(const std::string& verb) { return "write devices." + verb; }
};
INSTANTIATE_TEST_SUITE_P(Tier, WritesToV1, testing::Values(Tier::files), name_of);

TEST_P(WritesToV1, AreReported) {
  const ScratchCgroup scratch(*host_, Hierarchy::v1);
  const kernel::Cgroup cgroup = scratch.cgroup();
  add(scratch);
  const auto attack = [&](const char* file, const std::string& text) {
    const pid_t attacker = by_child([&] { return write_to(scratch.directory() + "/" + file, text); });
    EXPECT_TRUE(becomes_readable());
    const std::vector<Event> events = take_of(cgroup);
    EXPECT_EQ(events.size(), 1U);
    for (const Event& event : events) {
      EXPECT_EQ(event.writer.pid.value, attacker);
    }
    return describe(events);
  };
  EXPECT_EQ(attack("devices.deny", "a"), Lines{line_for("deny")});
  EXPECT_EQ(attack("devices.allow", "c 195:0 rw\n"), Lines{line_for("allow")});
  EXPECT_EQ(attack("devices.deny", " c 195:* rwm \n"), Lines{line_for("deny")});
}

TEST_P(WritesToV1, AreReportedFromAnotherMountNamespaceToo) {
  const ScratchCgroup scratch(*host_, Hierarchy::v1);
  const kernel::Cgroup cgroup = scratch.cgroup();
  add(scratch);
  const pid_t attacker = by_child([&] {
    return mount_privately("cgroup", directory_.path(), "devices") &&
           write_to(directory_.path() + cgroup.path.text + "/devices.deny", "c 195:0 rw");
  });
  EXPECT_EQ(describe(take_by(attacker)), Lines{line_for("deny")});
}

TEST_P(WritesToV1, AreNotReportedIfTheyFailOrAreOurs) {
  const ScratchCgroup scratch(*host_, Hierarchy::v1);
  add(scratch);
  scratch.write("devices.deny", "a");
  by_child([&] { return !write_to(scratch.directory() + "/devices.allow", "nonsense"); });
  EXPECT_EQ(describe(take_of(scratch.cgroup())), Lines{});
}

TEST_P(WritesToV1, LostAreReportedAndASweepThenFindsWhatChanged) {
  const ShortQueue few("/proc/sys/fs/fanotify/max_queued_events", "8");
  if (!few.is_set()) {
    GTEST_SKIP() << "the queue of fanotify cannot be made short here";
  }
  open(Tier::files);
  const ScratchCgroup scratch(*host_, Hierarchy::v1);
  add(scratch);
  const auto attack = [&](int turns) {
    bool done = true;
    for (int turn = 0; turn < turns && done; ++turn) {
      done = write_to(scratch.directory() + "/devices.deny", "a") &&
             write_to(scratch.directory() + "/devices.allow", "c 1:3 rw");
    }
    return done;
  };
  // fanotify merges equal events, so many writers are needed.
  for (int writers = 20; writers > 0; --writers) {
    by_child([&] { return attack(1); });
  }
  EXPECT_EQ(take_if([](const Event& event) { return event.kind == EventKind::lost; }).size(), 1U);
  EXPECT_EQ(describe(sweep()), Lines{"found changed"});
}

// ---- Polling --------------------------------------------------------------------------------------------------------

class SweepOf : public WatchTest, public testing::WithParamInterface<Hierarchy> {
 protected:
  void SetUp() override {
    WatchTest::SetUp();
    if (!IsSkipped() && !has(GetParam())) {
      GTEST_SKIP() << "needs cgroup " << title_of(GetParam());
    }
  }

  bool change(const ScratchCgroup& scratch) {
    if (GetParam() == Hierarchy::v1) {
      return write_to(scratch.directory() + "/devices.deny", "a");
    }
    return bool(bpf_->attach(scratch.cgroup(), load("c 1:3 rw"), kernel::AttachAlongside{}));
  }
};
INSTANTIATE_TEST_SUITE_P(Hierarchy, SweepOf, testing::Values(Hierarchy::v1, Hierarchy::v2),
                         [](const auto& one) { return title_of(one.param); });

TEST_P(SweepOf, FindsEachChangeOnceIfNothingButPollingWorks) {
  open(Tier::polling);
  EXPECT_TRUE(watch_->tiers().polls());
  auto scratch = std::make_unique<ScratchCgroup>(*host_, GetParam());
  const ScratchCgroup other(*host_, GetParam());
  const kernel::CgroupsPtr cgroups = add(*scratch);
  add(other);
  EXPECT_EQ(describe(sweep()), Lines{});
  by_child([&] { return change(*scratch); });
  EXPECT_EQ(describe(take()), Lines{});
  const std::vector<Event> events = sweep();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::found_changed);
  EXPECT_EQ(events[0].program.has_value(), GetParam() == Hierarchy::v2) << "which program it was";
  EXPECT_EQ(events[0].cgroup, scratch->cgroup().id);
  EXPECT_EQ(events[0].hierarchy, GetParam());
  EXPECT_FALSE(events[0].writer.is_known());
  EXPECT_EQ(describe(sweep()), Lines{});
  scratch.reset();
  EXPECT_EQ(describe(sweep()), Lines{"cgroup gone"});
  EXPECT_EQ(describe(sweep()), Lines{}) << "reported once";
  watch_->remove(*cgroups);
  EXPECT_EQ(describe(sweep()), Lines{});
}

TEST_P(SweepOf, FindsCgroupsThatAreNew) {
  open(Tier::polling);
  std::vector<Event> events;
  watch_->sweep(events);
  events.clear();
  const ScratchCgroup scratch(*host_, GetParam());
  watch_->sweep(events);
  EXPECT_EQ(describe(events), Lines{"cgroup made"});
}

TEST_F(WatchTest, CgroupsOfBothHierarchiesWithTheSameNumberHaveDifferentKeys) {
  kernel::CgroupsOfProcess v1;
  v1.v1.emplace().id = container::CgroupId{57};
  kernel::CgroupsOfProcess v2;
  v2.v2.emplace().id = container::CgroupId{57};
  EXPECT_NE(kernel::key_of(v1), kernel::key_of(v2));
}

// ---- Other events ---------------------------------------------------------------------------------------------------

TEST_P(SweepOf, AFirstProcessThatEndsIsReported) {
  open(Tier::polling);
  const ScratchCgroup scratch(*host_, GetParam());
  const pid_t first = start_child([] { return ::pause() == 0; });
  add(scratch, first);
  EXPECT_EQ(describe(take()), Lines{});
  ::kill(first, SIGKILL);
  EXPECT_TRUE(becomes_readable());
  const std::vector<Event> events = take();
  ::waitpid(first, nullptr, 0);
  ASSERT_EQ(describe(events), Lines{"process gone"});
  EXPECT_EQ(events[0].cgroup, scratch.cgroup().id);
  EXPECT_EQ(events[0].hierarchy, GetParam());
  EXPECT_EQ(describe(take()), Lines{});
}

TEST_P(SweepOf, AFirstProcessThatHasEndedBeforeIsReportedToo) {
  open(Tier::polling);
  const ScratchCgroup scratch(*host_, GetParam());
  add(scratch, by_child([] { return true; }));
  EXPECT_TRUE(becomes_readable());
  EXPECT_EQ(describe(take()), Lines{"process gone"});
}

TEST_F(WatchTest, EvidenceThatChangesIsReported) {
  open(Tier::polling);
  watch_->add_directory(*host_, directory_.path());
  watch_->add_directory(*host_, directory_.path() + "/none");
  EXPECT_EQ(describe(take()), Lines{});
  std::ofstream(directory_.path() + "/spec.json") << "{}";
  EXPECT_TRUE(becomes_readable());
  EXPECT_EQ(describe(take()), Lines{"evidence"});
  std::filesystem::rename(directory_.path() + "/spec.json", directory_.path() + "/other.json");
  EXPECT_EQ(describe(take()), Lines{"evidence"});
  EXPECT_EQ(describe(take()), Lines{});
}

TEST_F(WatchTest, DriversThatAreLoadedAreReported) {
  open(Tier::polling);
  const auto is_about_drivers = [](const Event& event) { return event.kind == EventKind::drivers; };
  const std::string directory = "/sys/bus/platform/drivers/";
  const std::vector<std::string> names = kernel::list_names(host_->root.get(), kernel::below_root(directory));
  if (names.empty() || !write_to(directory + names.front() + "/uevent", "add")) {
    GTEST_SKIP() << "no driver's uevent can be made here: " << std::strerror(errno);
  }
  EXPECT_TRUE(becomes_readable());
  EXPECT_EQ(take_if(is_about_drivers).size(), 1U);
}

}  // namespace
}  // namespace hf::test
