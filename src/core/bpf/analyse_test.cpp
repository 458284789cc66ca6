#include "core/bpf/analyse.h"

#include <gtest/gtest.h>

#include "core/bpf/call.h"
#include "core/bpf/generate.h"
#include "core/bpf/interpret.h"
#include "core/device/shortest.h"
#include "support/random.h"

namespace hf::bpf {
namespace {

using device::Access;
using device::Kind;
using device::Table;

Code code(const char* hex) { return *parse_hex(hex); }

std::string rules_of(const char* hex) {
  const Readable<Table> table = analyse(code(hex));
  if (!table) {
    return "opaque: " + table.error().why;
  }
  std::string text;
  for (const device::Rule& rule : device::shortest_rules(*table)) {
    text += to_string(rule) + ";";
  }
  return text;
}

std::string answer(const char* hex, const char* question) {
  const Readable<Verdict> verdict = interpret(code(hex), *device::parse_request(question));
  return !verdict ? verdict.error().why : *verdict == Verdict::allow ? "allow" : "deny";
}

// r0 = (condition on r4 = major or r5 = minor): what one comparison means.
TEST(Analyse, ReadsEveryComparison) {
  const auto program = [](const std::string& jump) {
    return "6114040000000000\n6115080000000000\nb700000001000000\n" + jump + "\nb700000000000000\n9500000000000000\n";
  };
  const std::pair<const char*, const char*> cases[] = {
      {"15040100c3000000", "c 195:* rwm;b 195:* rwm;"},                            // ==
      {"25040100c3000000", "c 196-*:* rwm;b 196-*:* rwm;"},                        // >
      {"35040100c3000000", "c 195-*:* rwm;b 195-*:* rwm;"},                        // >=
      {"a5040100c3000000", "c 0-194:* rwm;b 0-194:* rwm;"},                        // <
      {"b5040100c3000000", "c 0-195:* rwm;b 0-195:* rwm;"},                        // <=
      {"550501000a000000", "c *:0-9 rwm;b *:0-9 rwm;c *:11-* rwm;b *:11-* rwm;"},  // !=
      {"6504010005000000", "c 6-*:* rwm;b 6-*:* rwm;"},                    // signed >, 64 bits: a u32 is never negative
      {"6604010005000000", "c 6-2147483647:* rwm;b 6-2147483647:* rwm;"},  // signed >, 32 bits
      {"c604010000000000", "c 2147483648-*:* rwm;b 2147483648-*:* rwm;"},  // signed <, 32 bits
      {"160401000000ffff", "c 4294901760:* rwm;b 4294901760:* rwm;"},      // == of 32 bits
      {"150401000000ffff", ""},                                            // == of 64 bits: the number is negative
      {"45040100ffffffff", "c 1-*:* rwm;b 1-*:* rwm;"},                    // any bit
  };
  for (const auto& [jump, rules] : cases) {
    EXPECT_EQ(rules_of(program(jump).c_str()), rules) << jump;
  }
}

TEST(Analyse, FollowsArithmeticOnNumbers) {
  // major - 240, cut to 32 bits, <= 14
  EXPECT_EQ(rules_of("6114040000000000\n0704000010ffffff\n6704000020000000\n7704000020000000\nb700000001000000\n"
                     "b50401000e000000\nb700000000000000\n9500000000000000\n"),
            "c 240-254:* rwm;b 240-254:* rwm;");
  // (major << 20 | minor) == 195 << 20 | 255, as a dev_t is written
  EXPECT_EQ(rules_of("6114040000000000\n6115080000000000\n6704000014000000\n4f54000000000000\nb700000001000000\n"
                     "15040100ff00300c\nb700000000000000\n9500000000000000\n"),
            "opaque: combines major and minor in a way rules cannot say")
      << "a minor may have more than 20 bits here, as far as the code knows";
  // the same after minor < 1 << 20 was checked
  EXPECT_EQ(rules_of("6114040000000000\n6115080000000000\nb700000000000000\n25050500ffff0f00\n6704000014000000\n"
                     "4f54000000000000\n55040200ff00300c\nb700000001000000\n9500000000000000\n9500000000000000\n"),
            "c 195:255 rwm;b 195:255 rwm;");
}

TEST(Analyse, ReadsMajorAndMinorPackedIntoOneNumber) {
  // r4 = major << 32 | minor; r0 = r4 == 195 << 32 | 255
  const char* packed =
      "6114040000000000\n6115080000000000\n6704000020000000\n4f54000000000000\n18030000ff000000\n00000000c3000000\n"
      "b700000001000000\n1d34010000000000\nb700000000000000\n9500000000000000\n";
  EXPECT_EQ(rules_of(packed), "c 195:255 rwm;b 195:255 rwm;");
  EXPECT_EQ(answer(packed, "c:195:255:r"), "allow");
  EXPECT_EQ(answer(packed, "c:195:254:r"), "deny");
  // the same with >=
  EXPECT_EQ(rules_of("6114040000000000\n6115080000000000\n6704000020000000\n4f54000000000000\n18030000ff000000\n"
                     "00000000c3000000\nb700000001000000\n3d34010000000000\nb700000000000000\n9500000000000000\n"),
            "c 195:255-* rwm;b 195:255-* rwm;c 196-*:* rwm;b 196-*:* rwm;");
}

TEST(Analyse, FollowsNumbersThroughTheStack) {
  // *(u64*)(r10-8) = major; r5 = *(u32*)(r10-8); r0 = r5 == 195
  EXPECT_EQ(rules_of("6114040000000000\n7b4af8ff00000000\n61a5f8ff00000000\nb700000001000000\n15050100c3000000\n"
                     "b700000000000000\n9500000000000000\n"),
            "c 195:* rwm;b 195:* rwm;");
}

TEST(Analyse, FollowsCallsToFunctionsOfTheProgram) {
  // main: call +1; exit.   f: r0 = 1; if major == 195 exit; r0 = 0; exit
  const char* calls =
      "8510000001000000\n9500000000000000\n6114040000000000\nb700000001000000\n15040100c3000000\nb700000000000000\n"
      "9500000000000000\n";
  EXPECT_EQ(rules_of(calls), "c 195:* rwm;b 195:* rwm;");
  // read back from the kernel the distance is in the other field
  EXPECT_EQ(rules_of("8510010001000000\n9500000000000000\n6114040000000000\nb700000001000000\n15040100c3000000\n"
                     "b700000000000000\n9500000000000000\n"),
            "c 195:* rwm;b 195:* rwm;");
  EXPECT_EQ(answer(calls, "b:195:9:m"), "allow");
}

TEST(Analyse, FollowsALoopThatEnds) {
  // r3 = 0; r4 = major; do { r3 += 1 } while (r3 < 5); r0 = r4 == r3
  EXPECT_EQ(rules_of("b703000000000000\n6114040000000000\n0703000001000000\na503feff05000000\nb700000001000000\n"
                     "1d34010000000000\nb700000000000000\n9500000000000000\n"),
            "c 5:* rwm;b 5:* rwm;");
}

TEST(Analyse, IsOpaqueRatherThanGuessing) {
  const std::pair<const char*, const char*> cases[] = {
      {"6110080000000000\n5700000001000000\n9500000000000000\n", "too finely"},  // odd minors
      {"6114040000000000\n6115080000000000\nb700000001000000\n1d54010000000000\nb700000000000000\n9500000000000000\n",
       "with each other"},                                                                        // major == minor
      {"850000000e000000\n5700000001000000\n9500000000000000\n", "outside the program"},          // a helper's result
      {"b7010000f3ffffff\n85000000bb000000\nb700000001000000\n9500000000000000\n", "not EPERM"},  // -EACCES
      {"bf51000000000000\n85000000bb000000\nb700000001000000\n9500000000000000\n", "before setting"},
      {"850000000c000000\nb700000001000000\n9500000000000000\n", "bpf_tail_call"},
      {"8520000001000000\nb700000001000000\n9500000000000000\n", "not a helper"},  // kfunc
      {"b700000002000000\n9500000000000000\n", "else than 0 or 1"},
      {"9500000000000000\n", "else than 0 or 1"},  // r0 never set
      {"bf50000000000000\n9500000000000000\n", "before setting"},
      {"7910000000000000\n9500000000000000\n", "beside the request"},
      {"6910040000000000\n9500000000000000\n", "beside the request"},  // half a major
      {"0500ffff00000000\n", "too involved"},                          // runs for ever
      {"db1af8ff00000000\nb700000000000000\n9500000000000000\n", "atomic"},
  };
  for (const auto& [hex, why] : cases) {
    const Readable<Table> table = analyse(code(hex));
    ASSERT_FALSE(table) << hex;
    EXPECT_NE(table.error().why.find(why), std::string::npos) << table.error().why;
  }
}

// set_retval(-EPERM); return 1
constexpr const char* kRefuser = "b7010000ffffffff\n85000000bb000000\nb700000001000000\n9500000000000000\n";
// major == 195: set_retval(0); return 1
constexpr const char* kOverruler =
    "6112040000000000\n55020200c3000000\nb701000000000000\n85000000bb000000\nb700000001000000\n9500000000000000\n";
// return get_retval() == 0
constexpr const char* kFollower =
    "85000000ba000000\nbf01000000000000\nb700000000000000\n5501010000000000\nb700000001000000\n9500000000000000\n";

TEST(Analyse, ReadsProgramsThatSetTheError) {
  EXPECT_EQ(*analyse(code(kRefuser)), Table()) << "though it returns 1";
  EXPECT_EQ(*analyse_overrides(code(kRefuser)), Table());
  EXPECT_EQ(*analyse(code(kOverruler)), Table::everything());
  EXPECT_EQ(*analyse_overrides(code(kOverruler)),
            Table::of_rules(std::vector{*device::parse_rule("b 195:* rwm"), *device::parse_rule("c 195:* rwm")}));
  EXPECT_EQ(*analyse(code(kFollower)), Table::everything());
  EXPECT_EQ(*analyse_overrides(code(kFollower)), Table());
}

TEST(Analyse, AProgramThatSetsNoErrorOverrulesNothing) {
  EXPECT_EQ(*analyse_overrides(code("b700000001000000\n9500000000000000\n")), Table());
  EXPECT_FALSE(may_override(code("850000000e000000\nb700000001000000\n9500000000000000\n"), {}));
  EXPECT_TRUE(may_override(code(kOverruler), {}));
}

TEST(Interpret, SeesTheVerdictOfTheProgramsBefore) {
  const device::Request gpu = *device::parse_request("c:195:0:rw");
  const device::Request null = *device::parse_request("c:1:3:rw");
  EXPECT_EQ(*interpret(code(kOverruler), gpu, {}, Verdict::deny), Verdict::allow);
  EXPECT_EQ(*interpret(code(kOverruler), null, {}, Verdict::deny), Verdict::deny);
  EXPECT_EQ(*interpret(code(kOverruler), null, {}, Verdict::allow), Verdict::allow);
  EXPECT_EQ(*interpret(code(kFollower), gpu, {}, Verdict::deny), Verdict::deny);
  EXPECT_EQ(*interpret(code(kRefuser), gpu, {}, Verdict::allow), Verdict::deny);
}

// Each of these was once read wrongly.
TEST(Analyse, IsNotMisledByCraftedPrograms) {
  // bpf_loop runs a function of the program that calls bpf_set_retval(-1); main returns 1.
  const char* callback =
      "b701000001000000\n1842000006000000\n0000000000000000\nb703000000000000\nb704000000000000\n85000000b5000000\n"
      "b700000001000000\n9500000000000000\nb7010000ffffffff\n85000000bb000000\nb700000000000000\n9500000000000000\n";
  EXPECT_EQ(rules_of(callback), "opaque: hands one of its functions to a helper");
  EXPECT_EQ(answer(callback, "c:1:3:r"), "hands one of its functions to a helper");
  // The frame's own address is spilled, cleared by a helper call, loaded again and written through.
  const char* own_stack =
      "7baaf0ff00000000\nbfa1000000000000\n07010000f8ffffff\nb702000008000000\n7a0af8ff00000000\n8500000010000000\n"
      "620ae8ff00000000\n79a2f0ff00000000\n6202e8ff01000000\n61a0e8ff00000000\n9500000000000000\n";
  EXPECT_TRUE(rules_of(own_stack).starts_with("opaque")) << rules_of(own_stack);
  EXPECT_NE(answer(own_stack, "c:1:3:r"), "deny");
  // On each of two paths (major << 32) + (minor << 32) fits 64 bits, on their common hull it does not.
  const char* merged_sums =
      "6112040000000000\n6113080000000000\n18050000ffffffff\n0000000000000000\n1d52110000000000\n1d53100000000000\n"
      "a503020002000000\na502060002000000\n05000d0000000000\n6702000020000000\n6703000020000000\nbf24000000000000\n"
      "0f34000000000000\n0500040000000000\n6702000020000000\n6703000020000000\nbf24000000000000\n0f34000000000000\n"
      "1806000000000000\n00000000fdffffff\nb700000001000000\n3d64010000000000\nb700000000000000\n9500000000000000\n";
  const Readable<Table> table = analyse(code(merged_sums));
  for (const char* question :
       {"c:4294967294:0:r", "c:0:4294967294:r", "c:1:1:r", "c:4294967292:0:r", "c:7:4294967295:r"}) {
    const device::Request request = *device::parse_request(question);
    EXPECT_TRUE(!table || table->allows(request) == (*interpret(code(merged_sums), request) == Verdict::allow))
        << question;
  }
}

TEST(Analyse, SurvivesAddressesThatPointNowhere) {
  // A function that returns its frame pointer; an address with an offset beyond all bounds.
  EXPECT_TRUE(rules_of("8510000002000000\n7900f8ff00000000\n9500000000000000\nbfa0000000000000\n9500000000000000\n")
                  .starts_with("opaque"));
  const char* far =
      "bf12000000000000\n18030000fcffffff\n00000000ffffff7f\n0f32000000000000\n6120000000000000\n9500000000000000\n";
  EXPECT_TRUE(rules_of(far).starts_with("opaque"));
  EXPECT_EQ(answer(far, "c:1:3:r"), "reads beside the request");
}

TEST(Analyse, KnowsThatTheSecondHalfOfALoadDoesNothing) {
  EXPECT_EQ(rules_of("6112040000000000\nb700000001000000\n1502010005000000\nb700000000000000\n1803000007000000\n"
                     "0000000000000000\n9500000000000000\n"),
            "c 5:* rwm;b 5:* rwm;");
}

TEST(Analyse, IgnoresUnknownsThatDoNotAffectTheVerdict) {
  // call ktime; if (r0 == 0) r5 = 1 else r5 = 2; r0 = 1
  EXPECT_EQ(rules_of("8500000005000000\nb705000001000000\n1500010000000000\nb705000002000000\nb700000001000000\n9500000"
                     "000000000\n"),
            "a *:* rwm;");
  // a call by distance with no number in r1 cannot be bpf_set_retval
  EXPECT_EQ(rules_of("8500000070110500\nb700000001000000\n9500000000000000\n"), "a *:* rwm;");
}

TEST(Analyse, GivesUpEarlyOnProgramsWithTooManyPaths) {
  // 30 comparisons of minor bits in a row: 2^30 classes of devices.
  std::string hex = "6115080000000000\nb704000000000000\n";
  for (int bit = 0; bit < 30; ++bit) {
    hex += "bf53000000000000\n7703000001000000\n5703000001000000\n1503010000000000\n0704000001000000\n";
  }
  hex += "b700000001000000\n2504010003000000\nb700000000000000\n9500000000000000\n";
  EXPECT_FALSE(analyse(code(hex.c_str())));

  // 150 branches on something unknown, each leaving another number behind: 2^150 paths.
  hex = "8500000005000000\nbf06000000000000\nb704000000000000\n";
  for (int bit = 0; bit < 150; ++bit) {
    hex += "6704000001000000\n1506010000000000\n0704000001000000\n";
  }
  hex += "b700000001000000\n2504010003000000\nb700000000000000\n9500000000000000\n";
  EXPECT_FALSE(analyse(code(hex.c_str())));
  EXPECT_FALSE(interpret(code(hex.c_str()), *device::parse_request("c:1:3:r")));

  // A chain of jumps that goes backwards all the way.
  Code chain(60'000, Instruction{.code = BPF_JMP | BPF_JA, .dst_reg = 0, .src_reg = 0, .off = -2, .imm = 0});
  chain.front() = {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
  chain[1].off = 0;
  EXPECT_FALSE(analyse(chain));
}

TEST(Generate, MeansTheTableItWasGeneratedFrom) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    test::Random random(seed);
    const Table table = Table::of_rules(random.rules(14, 6, 6)) - Table::of_rules(random.rules(4, 6, 6));
    const Result<Code> written = generate(table);
    ASSERT_TRUE(written) << "seed " << seed << ": " << written.error().message;
    ASSERT_TRUE(check_loadable_again(*written));
    for (int i = 0; i < 50; ++i) {
      const device::Request request = random.request(9, 9);
      ASSERT_EQ(*interpret(*written, request) == Verdict::allow, table.allows(request)) << "seed " << seed;
    }
  }
}

TEST(Generate, DecidesByBinarySearch) {
  device::RuleSet rules;
  for (std::uint32_t i = 0; i < 200; ++i) {
    rules.push_back(*device::parse_rule("c " + std::to_string(100 + 2 * i) + ":" + std::to_string(i) + " rw"));
  }
  const Code written = *generate(Table::of_rules(rules));
  std::size_t jumps_back = 0;
  for (const Instruction& at : written) {
    jumps_back += is_jump_class(at) && at.off < 0 ? 1 : 0;
  }
  EXPECT_EQ(jumps_back, 0U);
  EXPECT_LT(written.size(), 2000U);
}

TEST(Generate, FailsWhenThereAreTooManyRules) {
  device::RuleSet rules;
  for (std::uint32_t i = 0; i < 12'000; ++i) {
    rules.push_back(*device::parse_rule("c " + std::to_string(i % 4000) + ":" + std::to_string(i) + " r"));
  }
  const Result<Code> written = generate(Table::of_rules(rules));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("too many rules"), std::string::npos);
}

TEST(Patch, PutsRulesBeforeAProgramThatStaysAsItIs) {
  const Code odd_minors = code("6110080000000000\n5700000001000000\n9500000000000000\n");
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::Random random(seed);
    const Override rules{Table::of_rules(random.rules(5, 4, 6)), Table::of_rules(random.rules(5, 4, 6))};
    const Result<Code> patched = patch(odd_minors, rules);
    ASSERT_TRUE(patched) << patched.error().message;
    const Code tail(patched->end() - 3, patched->end());
    EXPECT_TRUE(same(tail, odd_minors));
    for (int i = 0; i < 60; ++i) {
      const device::Request request = random.request(6, 9);
      const bool expected =
          !rules.deny.allows(request) && (rules.allow.allows(request) || request.device.minor % 2 == 1);
      ASSERT_EQ(*interpret(*patched, request) == Verdict::allow, expected)
          << "seed " << seed << " " << to_string(request);
    }
  }
}

TEST(Patch, LeavesOutAProgramThatWouldNeverBeReached) {
  const Code odd_minors = code("6110080000000000\n5700000001000000\n9500000000000000\n");
  EXPECT_EQ(*analyse(*patch(odd_minors, {Table::everything(), {}})), Table::everything());
  EXPECT_EQ(*analyse(*patch(odd_minors, {{}, Table::everything()})), Table());
}

TEST(Patch, RefusesCodeThatCannotBeLoadedAgain) {
  for (const char* hex : {"18110000db000000\n0000000000000000\nb700000000000000\n9500000000000000\n",
                          "8500000070110500\nb700000000000000\n9500000000000000\n",
                          "b40b0000461ce0c8\na40b0000471ce0c8\nbcb0000000000000\n9500000000000000\n"}) {
    EXPECT_FALSE(patch(code(hex), {})) << hex;
  }
}

TEST(Interpret, RunsTheInstructionsAnalysisNeedNotKnow) {
  // bswap16(minor) == 0x0100
  const char* swaps =
      "6114080000000000\nd704000010000000\nb700000001000000\n1504010000010000\nb700000000000000\n9500000000000000\n";
  EXPECT_EQ(answer(swaps, "c:1:1:r"), "allow");
  EXPECT_EQ(answer(swaps, "c:1:256:r"), "deny");
  // (s8)minor < 0
  const char* signs =
      "6114080000000000\nbf44080000000000\nb700000001000000\nc504010000000000\nb700000000000000\n9500000000000000\n";
  EXPECT_EQ(answer(signs, "c:1:128:r"), "allow");
  EXPECT_EQ(answer(signs, "c:1:127:r"), "deny");
}

}  // namespace
}  // namespace hf::bpf
