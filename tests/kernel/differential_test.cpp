// Compares the results of open, mknod and access in real cgroups with the verdicts of Table.
#include <cstdlib>

#include <bpf/bpf.h>

#include "core/bpf/analyse.h"
#include "core/bpf/generate.h"
#include "core/device/shortest.h"
#include "core/device/v1_list.h"
#include "kernel/cgroup/device_v1.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/cgroup/observe.h"
#include "kernel_test.h"
#include "support/random.h"
#include "support/vectors.h"

namespace hf::test {
namespace {

using container::Hierarchy;
using device::Access;
using device::Request;
using device::Table;

// HOLDFAST_SEED repeats a run; HOLDFAST_ROUNDS makes it longer (250 rounds are 30,000 verdicts per hierarchy).
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Differential : public KernelTest {
 protected:
  Differential() : KernelTest(Needs::v2) {}

  void SetUp() override {
    KernelTest::SetUp();
    majors_ = unused_majors(5);
    RecordProperty("seed", std::to_string(seed_));
  }

  // Rules and requests of the random generator have small majors; this maps them to majors without a driver.
  device::Rule with_real_major(device::Rule rule) const {
    if (rule.selector.major) {
      const std::uint32_t major = majors_[rule.selector.major->first];
      rule.selector.major = device::Span{major, major};
    }
    return rule;
  }

  std::vector<Request> requests(Random& random) const {
    std::vector<Request> made;
    for (int i = 0; i < 120; ++i) {
      Request request = random.request(std::uint32_t(majors_.size()), 5);
      constexpr Access kAsked[] = {Access::mknod, Access::read, Access::write, Access::read | Access::write};
      request.access = kAsked[random.below(4)];
      request.device.major = majors_[request.device.major];
      made.push_back(request);
    }
    return made;
  }

  void expect_same(const Table& table, const std::vector<Request>& asked, const std::vector<bool>& answers,
                   std::uint64_t round) {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(table.allows(asked[i]), answers[i])
          << to_string(asked[i]) << " in round " << round << ", HOLDFAST_SEED=" << seed_;
      ++verdicts_;
    }
  }

  // A program that refuses one major, overrules earlier programs for one major, or inverts the verdict so far.
  [[nodiscard]] bpf::Code random_program(Random& random) const {
    const auto make = [](unsigned code, unsigned dst, unsigned src, int off, std::int32_t imm) {
      return bpf::Instruction{.code = std::uint8_t(code),
                              .dst_reg = std::uint8_t(dst & 15U),
                              .src_reg = std::uint8_t(src & 15U),
                              .off = std::int16_t(off),
                              .imm = imm};
    };
    const std::int32_t major = std::int32_t(majors_[random.below(std::uint32_t(majors_.size()))]);
    const bpf::Instruction load = make(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 4, 0);
    const bpf::Instruction is_major = make(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 2, major);
    const bpf::Instruction allow = make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
    const bpf::Instruction refuse = make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
    const bpf::Instruction end = make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    const auto set = [&](std::int32_t error) { return make(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, error); };
    const bpf::Instruction call_set = make(BPF_JMP | BPF_CALL, 0, 0, 0, 187);
    switch (random.below(5)) {
      case 0: return {load, is_major, refuse, end, allow, end};
      case 1: return {load, is_major, set(0), call_set, allow, end};
      case 2: return {load, is_major, set(-1), call_set, allow, end};
      case 3:  // overrules, and refuses all the same
        return {load, is_major, set(0), call_set, refuse, end};
      default:  // inverts the verdict so far
        return {make(BPF_JMP | BPF_CALL, 0, 0, 0, 186),
                make(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4, 0),
                set(0),
                call_set,
                allow,
                end,
                refuse,
                end};
    }
  }

  std::uint64_t seed_ = from_environment("HOLDFAST_SEED", std::random_device()());
  std::uint64_t rounds_ = from_environment("HOLDFAST_ROUNDS", 250);
  std::uint64_t verdicts_ = 0;
  std::vector<std::uint32_t> majors_;
  NodeDirectory nodes_;
};

TEST_F(Differential, V1ListsMeanWhatTheKernelDoes) {
  if (!host_->v1) {
    GTEST_SKIP() << "needs cgroup v1 devices";
  }
  for (std::uint64_t round = 0; round < rounds_; ++round) {
    Random random(seed_ + round);
    const ScratchCgroup cgroup(*host_, Hierarchy::v1);
    device::V1List list{device::DefaultVerdict::allow, {}};
    const auto write = [&](const device::CgroupWrite& made) {
      cgroup.write(file_of(made.verb), to_string(made));
      list = after(std::move(list), made);
    };
    if (!random.one_in(3)) {
      write({device::Verb::deny, std::nullopt});
    }
    for (std::uint32_t count = random.below(12); count > 0; --count) {
      const device::Verb verb = random.one_in(4) ? device::Verb::deny : device::Verb::allow;
      write({verb, with_real_major(random.v1_rule(std::uint32_t(majors_.size()), 5))});
    }
    const Result<device::V1List> read = kernel::read_v1_list(cgroup.cgroup());
    ASSERT_TRUE(read) << read.error().message;
    if (list.default_verdict == device::DefaultVerdict::deny) {
      ASSERT_EQ(*read, list) << "the kernel keeps another list, HOLDFAST_SEED=" << seed_ << " round " << round;
    }
    const std::vector<Request> asked = requests(random);
    expect_same(meaning(list), asked, ask_kernel({&cgroup}, asked, nodes_), round);
  }
  EXPECT_GE(verdicts_, 120 * rounds_);
  std::printf("%llu verdicts of cgroup v1, no difference\n", static_cast<unsigned long long>(verdicts_));
}

TEST_F(Differential, OurProgramsMeanTheirTables) {
  for (std::uint64_t round = 0; round < rounds_; ++round) {
    Random random(seed_ + round);
    device::RuleSet rules;
    for (std::uint32_t count = random.below(12); count > 0; --count) {
      rules.push_back(with_real_major(random.v1_rule(std::uint32_t(majors_.size()), 5)));
    }
    const Table wanted = random.one_in(3) ? Table::everything() - Table::of_rules(rules) : Table::of_rules(rules);
    const ScratchCgroup cgroup(*host_, Hierarchy::v2);
    const Result<container::ProgramId> id = kernel::attach_program(*filters_, cgroup.cgroup(), *bpf::generate(wanted));
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_EQ(*(*filters_->read(*id))->meaning.table, wanted) << "read back";
    const std::vector<Request> asked = requests(random);
    expect_same(wanted, asked, ask_kernel({&cgroup}, asked, nodes_), round);
  }
  EXPECT_GE(verdicts_, 120 * rounds_);
  std::printf("%llu verdicts of cgroup v2, no difference\n", static_cast<unsigned long long>(verdicts_));
}

// Programs that refuse and programs that overrule earlier ones, in random order on three levels.
TEST_F(Differential, OrdersOfProgramsThatSetTheVerdictMeanWhatTheKernelDoes) {
  for (std::uint64_t round = 0; round < rounds_ / 5; ++round) {
    Random random(seed_ + round);
    const ScratchCgroup top(*host_, Hierarchy::v2);
    const ScratchCgroup middle(*host_, Hierarchy::v2, top.directory());
    const ScratchCgroup bottom(*host_, Hierarchy::v2, middle.directory());
    std::vector<kernel::Fd> programs;
    for (const ScratchCgroup* cgroup : {&top, &middle, &bottom}) {
      for (std::uint32_t count = random.below(4); count > 0; --count) {
        const bpf::Code code = random_program(random);
        bpf_prog_load_opts options{};
        options.sz = sizeof(options);
        options.expected_attach_type = BPF_CGROUP_DEVICE;
        programs.emplace_back(
            ::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, "setter", "GPL", code.data(), code.size(), &options));
        if (!programs.back()) {
          GTEST_SKIP() << "this kernel has no bpf_set_retval for device programs (5.18 and later do)";
        }
        ASSERT_EQ(::bpf_prog_attach(programs.back().get(), cgroup->cgroup().directory.get(), BPF_CGROUP_DEVICE,
                                    BPF_F_ALLOW_MULTI),
                  0);
      }
    }
    kernel::CgroupsOfProcess target;
    target.v2 = bottom.cgroup();
    const Result<container::Observed> observed = kernel::observe(*filters_, target);
    ASSERT_TRUE(observed) << observed.error().message;
    const container::Effective effective = container::effective(*observed);
    ASSERT_TRUE(effective.exact) << effective.why;
    const std::vector<Request> asked = requests(random);
    const std::vector<bool> answers = ask_kernel({&bottom}, asked, nodes_);
    expect_same(effective.table, asked, answers, round);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const bool is_allowed = container::judge(*observed, asked[i]).kind == container::Answer::Kind::allow;
      ASSERT_EQ(is_allowed, answers[i]) << to_string(asked[i]) << ", HOLDFAST_SEED=" << seed_ << " round " << round;
    }
  }
  std::printf("%llu verdicts of programs that set the verdict, no difference\n",
              static_cast<unsigned long long>(verdicts_));
}

TEST_F(Differential, RecordedFiltersDoInTheKernelWhatTheirTablesSay) {
  const std::vector<Vector> vectors = read_bpf_vectors();
  if (vectors.empty()) {
    GTEST_SKIP() << "no recorded filters at " << vectors_directory();
  }
  for (const Vector& vector : vectors) {
    if (!bpf::check_loadable_again(vector.program.code)) {
      continue;  // blinded, or with a map
    }
    const Table meaning = *bpf::analyse(vector.program.code);
    const ScratchCgroup cgroup(*host_, Hierarchy::v2);
    const Result<container::ProgramId> id = kernel::attach_program(*filters_, cgroup.cgroup(), vector.program.code);
    ASSERT_TRUE(id) << vector.name << ": " << id.error().message;
    std::vector<Request> asked;
    for (const device::Device& device : landmark_devices(vector.program.code)) {
      // Kernel: numbers beyond dev_t do not exist, and 0:0 is never asked about (devcgroup_inode_permission).
      const bool is_zero = device.major == 0 && device.minor == 0;
      if (is_zero || device.major > device::kLastMajor || device.minor > device::kLastMinor) {
        continue;
      }
      for (const Access access : {Access::mknod, Access::read, Access::write, Access::read | Access::write}) {
        asked.push_back({device, access});
      }
    }
    NodeDirectory nodes;
    const std::vector<bool> answers = ask_kernel({&cgroup}, asked, nodes);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(meaning.allows(asked[i]), answers[i]) << vector.name << " " << to_string(asked[i]);
    }
    verdicts_ += asked.size();
  }
  std::printf("%llu verdicts of recorded filters, no difference\n", static_cast<unsigned long long>(verdicts_));
}

}  // namespace
}  // namespace hf::test
