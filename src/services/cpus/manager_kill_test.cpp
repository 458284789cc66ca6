// A manager that is killed before any of its changes leaves no CPU with two owners, and nothing that the next one would
// not finish.
#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "services/cpus/manager_test.h"
#include "services/cpus/state.h"

namespace hf::cpus {
namespace {

bool changes_a_file(std::uint64_t number) {
  static const std::set<std::uint64_t> all = {SYS_write,  SYS_pwrite64, SYS_renameat, SYS_renameat2, SYS_unlinkat,
#ifdef SYS_rename
                                              SYS_rename, SYS_unlink
#endif
  };
  return all.contains(number);
}

bool is_at_a_change(pid_t child) {
  __ptrace_syscall_info call{};
  return ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(call), &call) > 0 && call.op == PTRACE_SYSCALL_INFO_ENTRY &&
         changes_a_file(call.entry.nr);
}

// A child that is killed before its n-th change of a file. False: it ended before; nothing: it cannot be traced here.
std::optional<bool> killed_before(std::size_t n, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) < 0) {
      ::_exit(1);
    }
    (void)::raise(SIGSTOP);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status) || ::ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0) {
    ::kill(child, SIGKILL);
    return std::nullopt;
  }
  for (std::size_t changes = 0; WIFSTOPPED(status);) {
    if (WSTOPSIG(status) == (SIGTRAP | 0x80) && is_at_a_change(child) && ++changes == n) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return true;
    }
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return false;
}

class Killing : public Managing {
 protected:
  // "o" has CPUs and ends; "a" and "c" ask for some; "b" moves out of their way, and into those of "o".
  void begin() {
    fs::remove_all(at("state"));
    for (const char* name : {"a", "b", "c", "o"}) {
      make(name);
    }
    before_ = {limited("o", 2, 200'000, "200000"), limited("a", 0, 200'000, "200000"), tenant("b")};
    after_ = {limited("a", 2, 200'000, "200000"), tenant("b"), limited("c", 4, 400'000, "400000")};
    reconcile(before_);
    ASSERT_EQ(cpus("o"), "1,9");
    for (const char* name : {"a", "b", "c"}) {
      started_[name] = cpus(name);
    }
    fs::remove_all(cgroup("o"));
  }

  void reconcile(const Tenants& tenants) {
    Manager manager = *open();
    Managing::reconcile(manager, tenants);
  }

  void check_owners() {
    const cpu::State state = *read_state(at("state/cpu_manager_state"));
    for (const char* owner : {"a", "c"}) {
      const cpu::CpuSet* const own = find_entry(state, {owner, "c"});
      if (own == nullptr || to_string(*own) != cpus(owner)) {
        continue;  // not there yet
      }
      for (const char* other : {"a", "b", "c"}) {
        const bool is_shared = std::string(other) != owner && cpu::parse_cpu_set(cpus(other))->overlaps(*own);
        EXPECT_TRUE(!is_shared || cpus(other) == started_[other])  // it was there before, and has yet to leave
            << owner << " has " << cpus(owner) << ", " << other << " has " << cpus(other);
        EXPECT_FALSE(is_shared && get(quota_file(owner)) == "-1") << owner << " and " << other;
      }
    }
  }

  std::map<std::string, std::string> started_;  // the cpusets before
  Tenants before_;
  Tenants after_;
};

TEST_F(Killing, BeforeAnyOfItsChangesLeavesNothingThatTheNextOneWouldNotFinish) {
  std::optional<bool> killed = true;
  std::size_t n = 1;
  for (; killed == true; ++n) {
    begin();
    killed = killed_before(n, [this] { reconcile(after_); });
    if (!killed) {
      GTEST_SKIP() << "a process cannot be traced here";
    }
    check_owners();
    reconcile(after_);
    SCOPED_TRACE("killed before change " + std::to_string(n));
    EXPECT_EQ(cpus("a"), "1,9");
    EXPECT_EQ(cpus("c"), "2-3,10-11");
    EXPECT_EQ(cpus("b"), "0,4-8,12-15");
    EXPECT_EQ(get(quota_file("a")), "-1");
    EXPECT_EQ(get(quota_file("c")), "-1");
    EXPECT_EQ(log_.find("rebuilt"), std::string::npos) << log_;
  }
  EXPECT_GT(n, 8U);  // a state, three cpusets and two quotas at least
}

}  // namespace
}  // namespace hf::cpus
