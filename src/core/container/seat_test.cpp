#include "core/container/seat.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace hf::container {
namespace {

using device::Device;
using device::Kind;
using device::Part;

const Device kGpu{Kind::character, 195, 0};
const Device kOther{Kind::character, 497, 0};

// A row of the table: what access and open say, what is behind the numbers, and what that means.
struct Row {
  const char* name;
  std::optional<int> access;
  std::optional<int> open;
  Device seen;
  std::string driver;
  Trouble trouble;
};

TEST(Classifier, FollowsTheTable) {
  const std::vector<Row> rows = {
      {"the cgroup denies, the driver matches", EPERM, EPERM, kGpu, "nvidia", Trouble::cgroup_denies},
      {"the cgroup denies, no driver there", EPERM, EPERM, kOther, "", Trouble::cgroup_denies},
      {"the cgroup denies, open not tried", EPERM, std::nullopt, kGpu, "nvidia", Trouble::cgroup_denies},
      {"the driver refuses", 0, EPERM, kGpu, "nvidia", Trouble::driver_refuses},
      {"nodev by open", 0, EACCES, kGpu, "nvidia", Trouble::nodev_mount},
      {"no driver at the number", 0, ENXIO, kGpu, "", Trouble::no_driver},
      {"the major moved, nobody has the old one", 0, ENXIO, kOther, "", Trouble::no_driver},
      {"open succeeds at a wrong driver", 0, 0, kOther, "nvidia-caps", Trouble::wrong_driver},
      {"wrong driver, open not tried", 0, std::nullopt, kOther, "nvidia-caps", Trouble::wrong_driver},
      {"the device is gone", 0, ENODEV, kGpu, "nvidia", Trouble::device_gone},
      {"initialisation failed", 0, EIO, kGpu, "nvidia", Trouble::initialisation},
      {"busy", 0, EBUSY, kGpu, "nvidia", Trouble::busy},
      {"fine", 0, 0, kGpu, "nvidia", Trouble::none},
      {"fine, open not tried", 0, std::nullopt, kGpu, "nvidia", Trouble::none},
      {"ENXIO of a driver that is there", 0, ENXIO, kGpu, "nvidia", Trouble::no_driver},
      {"an error of access nobody expects", ELOOP, std::nullopt, kGpu, "nvidia", Trouble::unknown},
      {"an error of open nobody expects", 0, ENOMEM, kGpu, "nvidia", Trouble::unknown},
  };
  for (const Row& row : rows) {
    Seen seen{"/dev/nvidia0", 0, row.seen, 0666, 0, 0, false, row.access, row.open};
    const Diagnosis diagnosis = classify(
        seen, {true, row.driver, kGpu, row.access == EPERM ? Answer::Kind::deny : Answer::Kind::allow, true, {}});
    EXPECT_EQ(to_string(diagnosis.trouble), to_string(row.trouble)) << row.name;
    EXPECT_EQ(diagnosis.words.empty(), row.trouble == Trouble::none) << row.name;
  }
}

TEST(Classifier, BlamesTheNumbersWhereTheRulesAllowTheDevice) {
  const Seen seen{"/dev/nvidia-uvm", 0, kOther, 0666, 0, 0, false, EPERM, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::no_driver);
  EXPECT_EQ(classify(seen, {true, "nvidia-caps", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::wrong_driver);
  EXPECT_EQ(classify(seen, {true, "", kGpu, Answer::Kind::deny, true, {}}).trouble, Trouble::cgroup_denies);
}

TEST(Classifier, TellsPermissionBitsFromSecurityModules) {
  const Seen seen{"/dev/nvidia0", 0, kGpu, 0660, 0, 44, false, EACCES, EACCES};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, false, {}}).trouble, Trouble::permission_bits);
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::security_module);
}

TEST(Classifier, TellsWhereANodeIsMissing) {
  const Seen seen{"/dev/nvidia-uvm", ENOENT, std::nullopt, 0, 0, 0, false, ENOENT, ENOENT};
  EXPECT_EQ(classify(seen, {true, "", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::missing);
  EXPECT_EQ(classify(seen, {false, "", std::nullopt, Answer::Kind::allow, true, {}}).trouble, Trouble::missing_on_host);
}

TEST(Classifier, DoesNotTakeAFileForADevice) {
  const Seen seen{"/dev/nvidia0", 0, std::nullopt, 0644, 0, 0, false, 0, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::no_device_node);
}

TEST(Classifier, SeesNodevWithoutOpening) {
  const Seen seen{"/dev/nvidia0", 0, kGpu, 0666, 0, 0, true, 0, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::nodev_mount);
}

TEST(Classifier, GoesByTheRulesWhereNothingWasAsked) {
  const Seen seen{"/dev/nvidia0", 0, kGpu, 0666, 0, 0, false, std::nullopt, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::deny, true, {}}).trouble, Trouble::cgroup_denies);
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).trouble, Trouble::none);
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::unknown, true, {}}).trouble, Trouble::unknown);
}

TEST(PermissionBits, AreReadAsTheKernelReadsThem) {
  const Seen node{"/dev/x", 0, kGpu, 0660, 0, 44, false, {}, {}};
  EXPECT_TRUE(bits_allow(node, {0, {0}, false}));
  EXPECT_TRUE(bits_allow(node, {1000, {44}, false}));
  EXPECT_FALSE(bits_allow(node, {1000, {1000}, false}));
  EXPECT_TRUE(bits_allow(node, {1000, {1000}, true}));
  const Seen closed{"/dev/x", 0, kGpu, 0066, 0, 44, false, {}, {}};
  EXPECT_FALSE(bits_allow(closed, {0, {44}, false}));  // the owner's bits alone count for the owner
}

NodeState node(Part part, Trouble trouble) {
  NodeState state;
  state.owed.device_class = "nvidia";
  state.owed.part = part;
  state.owed.device = kGpu;
  state.seen.device = trouble == Trouble::no_driver ? kOther : kGpu;
  state.diagnosis.trouble = trouble;
  return state;
}

TEST(State, OfAContainerComesFromItsNodes) {
  const NodeState good = node(Part::unit, Trouble::none);
  const NodeState denied = node(Part::unit, Trouble::cgroup_denies);
  const NodeState no_control = node(Part::control, Trouble::missing);
  const NodeState no_helper = node(Part::helper, Trouble::missing);
  const NodeState moved = node(Part::control, Trouble::wrong_driver);
  EXPECT_EQ(state_of({}, false), State::not_owed);
  EXPECT_EQ(state_of({good}, false), State::ok);
  EXPECT_EQ(state_of({good}, true), State::at_risk);
  EXPECT_EQ(state_of({denied}, false), State::lost);
  EXPECT_EQ(state_of({good, denied}, true), State::partial);
  EXPECT_EQ(state_of({good, no_control}, false), State::lost);
  EXPECT_EQ(state_of({good, no_helper}, false), State::partial);
  EXPECT_EQ(state_of({good, moved}, false), State::stale);
  EXPECT_EQ(state_of({good, node(Part::control, Trouble::no_driver)}, false), State::stale);
  EXPECT_EQ(state_of({good, node(Part::helper, Trouble::unknown)}, false), State::unknown);
}

}  // namespace
}  // namespace hf::container
