// Tests that a view without entering a container, completed by its rules and permission bits, and a probe from inside
// it see the same on the real kernel.
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bpf/generate.h"
#include "core/container/entitlement/node_state.h"
#include "kernel/cgroup/observe.h"
#include "kernel/container/node_prober.h"
#include "kernel_test.h"

namespace hf::test {
namespace {

using container::Hierarchy;
using container::NodeView;
using device::Access;
using device::Device;
using device::Kind;

constexpr Access kReadWrite = Access::read | Access::write;
constexpr uid_t kNobody = 65534;

// Stands for a container: it has cgroups and a user of its own, and waits.
class Waiting {
 public:
  Waiting(const std::vector<const ScratchCgroup*>& cgroups, uid_t user) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
      return;
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      serve(cgroups, user, ends[1]);
    }
    ::close(ends[1]);
    char byte = 0;
    is_ready_ = ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  [[nodiscard]] bool is_ready() const { return is_ready_; }
  [[nodiscard]] container::Pid pid() const { return container::Pid{pid_}; }

 private:
  [[noreturn]] static void serve(const std::vector<const ScratchCgroup*>& cgroups, uid_t user, int ready) noexcept {
    for (const ScratchCgroup* cgroup : cgroups) {
      cgroup->write("cgroup.procs", "0");
    }
    const bool is_root = user == 0;
    if (!is_root &&
        (::setgroups(0, nullptr) < 0 || ::setresgid(user, user, user) < 0 || ::setresuid(user, user, user) < 0)) {
      ::_exit(1);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::write(ready, "", 1) != 1) {
      ::_exit(1);
    }
    for (;;) {
      ::pause();
    }
  }

  pid_t pid_ = -1;
  bool is_ready_ = false;
};

std::string describe(const NodeView& seen) {
  const auto number = [](std::optional<int> error) { return error ? std::to_string(*error) : "none"; };
  return "lookup " + std::to_string(seen.lookup_error) + ", device " +
         (seen.device ? to_string(*seen.device) : "none") + ", mode " + std::to_string(seen.mode) + ", owner " +
         std::to_string(seen.uid) + ":" + std::to_string(seen.gid) + (seen.is_on_nodev_mount ? ", nodev" : "") +
         ", access " + number(seen.access) + ", open " + number(seen.open);
}

class ViewTest : public KernelTest, public testing::WithParamInterface<Hierarchy> {
 protected:
  ViewTest() : KernelTest(Needs::v2) {}

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (!host_->mount_of(GetParam())) {
      GTEST_SKIP() << "needs cgroup v1 devices";
    }
    v2_.emplace(*host_, Hierarchy::v2);
    if (host_->v1) {
      v1_.emplace(*host_, Hierarchy::v1);
    }
    ASSERT_EQ(::chmod(nodes_.path().c_str(), 0755), 0) << "as /dev of a container";
    const std::uint32_t major = unused_majors(1).front();
    paths_ = {create(major, 0, 0666), create(major, 1, 0666), nodes_.path() + "/missing", create(major, 2, 0600)};
    const std::string prefix = "c " + std::to_string(major) + ":";
    allow({prefix + "0 rw", prefix + "2 rw"});
  }

  struct Both {
    std::vector<NodeView> view;
    std::vector<NodeView> probe;
  };
  Both see_as(uid_t user) {
    const Waiting process(cgroups(), user);
    EXPECT_TRUE(process.is_ready());
    const Result<kernel::Process> read = kernel::read_process(*host_, process.pid());
    EXPECT_TRUE(read) << read.error().message;
    container::Container container;
    container.init = process.pid();
    container.started_ticks = read ? read->started_at : 0;
    const Result<kernel::ContainerHandle> handle = kernel::ContainerHandle::open(*host_, container);
    EXPECT_TRUE(handle) << handle.error().message;
    return handle ? see(*handle) : Both();
  }

  std::vector<std::string> paths_;  // allowed, denied, missing, allowed with mode 0600
  NodeDirectory nodes_;

 private:
  void allow(const std::vector<std::string>& rules) {
    device::RuleSet set;
    if (v1_) {
      v1_->write("devices.deny", "a");  // of a list that allows by default, the kernel does not show what it refuses
    }
    if (v1_ && GetParam() == Hierarchy::v2) {
      v1_->write("devices.allow", "c *:* rw");
    }
    for (const std::string& rule : rules) {
      set.push_back(*device::parse_rule(rule));
      if (GetParam() == Hierarchy::v1) {
        v1_->write("devices.allow", rule);
      }
    }
    if (GetParam() == Hierarchy::v2) {
      const kernel::Program program = *bpf_->load(*bpf::generate(device::Table::of_rules(set)));
      ASSERT_TRUE(bpf_->attach(v2_->cgroup(), program, kernel::AttachAlongside{}));
    }
  }

  [[nodiscard]] std::vector<const ScratchCgroup*> cgroups() const {
    std::vector<const ScratchCgroup*> all = {&*v2_};
    if (v1_) {
      all.push_back(&*v1_);
    }
    return all;
  }

  Both see(const kernel::ContainerHandle& handle) {
    const std::unique_ptr<kernel::NodeProber> prober = kernel::open_node_prober(*host_);
    const kernel::ProbeRequest request{.container = handle, .paths = paths_};
    Result<std::vector<NodeView>> view = prober->look_up(request);
    const Result<std::vector<NodeView>> probe = prober->probe(request);
    const Result<container::Observed> observed = kernel::observe(*filters_, handle.actual());
    const Result<kernel::Rights> rights = kernel::read_rights(*host_, handle.process());
    EXPECT_TRUE(view && probe && observed && rights);
    if (!view || !probe || !observed || !rights) {
      return {};
    }
    for (NodeView& seen : *view) {
      complete(seen, *observed, rights->user);
    }
    return {*view, *probe};
  }

  // Adds what access(2) would give, as the daemon does.
  static void complete(NodeView& seen, const container::Observed& observed, const container::Credentials& user) {
    if (seen.lookup_error == 0 && seen.device) {
      container::OwedNode owed;
      owed.device = seen.device;
      owed.access = kReadWrite;
      seen.access = access_by_rules(seen, owed, judge(observed, {*seen.device, kReadWrite}), user);
    }
  }

  std::string create(std::uint32_t major, std::uint32_t minor, mode_t mode) {
    std::string path = nodes_.node({Kind::character, major, minor});
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  std::optional<ScratchCgroup> v1_;
  std::optional<ScratchCgroup> v2_;
};

std::string name_of(const testing::TestParamInfo<Hierarchy>& tested) {
  return tested.param == Hierarchy::v1 ? "V1" : "V2";
}

INSTANTIATE_TEST_SUITE_P(Cgroup, ViewTest, testing::Values(Hierarchy::v1, Hierarchy::v2), name_of);

TEST_P(ViewTest, SeesWhatTheProbeSees) {
  const Both seen = see_as(0);
  ASSERT_EQ(seen.view.size(), paths_.size());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    EXPECT_EQ(describe(seen.view[i]), describe(seen.probe[i])) << paths_[i];
  }
  EXPECT_EQ(seen.probe[0].access, 0);
  EXPECT_EQ(seen.probe[1].access, EPERM);
  EXPECT_EQ(seen.probe[2].lookup_error, ENOENT);
  EXPECT_EQ(seen.probe[3].access, 0) << "root may use a node of mode 0600";
  EXPECT_EQ(seen.probe[3].mode, 0600U);
}

TEST_P(ViewTest, LeavesPermissionBitsOfOthersToTheProbe) {
  const Both seen = see_as(kNobody);
  ASSERT_EQ(seen.view.size(), paths_.size());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(describe(seen.view[i]), describe(seen.probe[i])) << paths_[i];
  }
  EXPECT_EQ(seen.probe[1].access, EPERM);
  EXPECT_EQ(seen.view[3].access, std::nullopt) << "only a try tells";
  EXPECT_EQ(seen.probe[3].access, EACCES);
  NodeView completed = seen.view[3];
  completed.access = EACCES;
  EXPECT_EQ(describe(completed), describe(seen.probe[3]));
}

TEST_P(ViewTest, LeavesDirectoriesThatNotEveryUserMaySearchToTheProbe) {
  ASSERT_EQ(::chmod(nodes_.path().c_str(), 0700), 0);
  const Both seen = see_as(kNobody);
  ASSERT_EQ(seen.view.size(), paths_.size());
  EXPECT_EQ(seen.view[0].access, std::nullopt) << "only a try tells";
  EXPECT_EQ(seen.probe[0].access, EACCES);
  EXPECT_EQ(see_as(0).view.at(0).access, 0) << "root may search it";
}

}  // namespace
}  // namespace hf::test
