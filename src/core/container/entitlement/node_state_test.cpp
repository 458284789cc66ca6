#include "core/container/entitlement/node_state.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace hf::container {
namespace {

using device::Access;
using device::Device;
using device::Kind;
using device::Part;

const Device kGpu{Kind::character, 195, 0};
const Device kOther{Kind::character, 497, 0};

// A row of the table: the errors of access and open, the driver behind the numbers, and the expected failure.
struct Row {
  const char* name;
  std::optional<int> access;
  std::optional<int> open;
  Device seen;
  std::string driver;
  AccessFailure failure;
};

TEST(Classifier, MapsErrorsToFailures) {
  const std::vector<Row> rows = {
      {"the cgroup denies, the driver matches", EPERM, EPERM, kGpu, "nvidia", AccessFailure::cgroup_denies},
      {"the cgroup denies, no driver there", EPERM, EPERM, kOther, "", AccessFailure::cgroup_denies},
      {"the cgroup denies, open not tried", EPERM, std::nullopt, kGpu, "nvidia", AccessFailure::cgroup_denies},
      {"the driver refuses", 0, EPERM, kGpu, "nvidia", AccessFailure::driver_refuses},
      {"nodev by open", 0, EACCES, kGpu, "nvidia", AccessFailure::nodev_mount},
      {"no driver at the number", 0, ENXIO, kGpu, "", AccessFailure::no_driver},
      {"the major moved, no driver has the old one", 0, ENXIO, kOther, "", AccessFailure::no_driver},
      {"open succeeds at a wrong driver", 0, 0, kOther, "nvidia-caps", AccessFailure::wrong_driver},
      {"wrong driver, open not tried", 0, std::nullopt, kOther, "nvidia-caps", AccessFailure::wrong_driver},
      {"the device is gone", 0, ENODEV, kGpu, "nvidia", AccessFailure::device_gone},
      {"initialisation failed", 0, EIO, kGpu, "nvidia", AccessFailure::initialisation},
      {"busy", 0, EBUSY, kGpu, "nvidia", AccessFailure::busy},
      {"fine", 0, 0, kGpu, "nvidia", AccessFailure::none},
      {"fine, open not tried", 0, std::nullopt, kGpu, "nvidia", AccessFailure::none},
      {"ENXIO of a driver that is there", 0, ENXIO, kGpu, "nvidia", AccessFailure::no_driver},
      {"an unexpected error of access", ELOOP, std::nullopt, kGpu, "nvidia", AccessFailure::unknown},
      {"an unexpected error of open", 0, ENOMEM, kGpu, "nvidia", AccessFailure::unknown},
  };
  for (const Row& row : rows) {
    NodeView seen{"/dev/nvidia0", 0, row.seen, 0666, 0, 0, false, row.access, row.open};
    const Diagnosis diagnosis = classify(
        seen, {true, row.driver, kGpu, row.access == EPERM ? Answer::Kind::deny : Answer::Kind::allow, true, {}});
    EXPECT_EQ(to_string(diagnosis.failure), to_string(row.failure)) << row.name;
    EXPECT_EQ(diagnosis.text.empty(), row.failure == AccessFailure::none) << row.name;
  }
}

TEST(Classifier, BlamesTheNumbersWhereTheRulesAllowTheDevice) {
  const NodeView seen{"/dev/nvidia-uvm", 0, kOther, 0666, 0, 0, false, EPERM, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "", kGpu, Answer::Kind::allow, true, {}}).failure, AccessFailure::no_driver);
  EXPECT_EQ(classify(seen, {true, "nvidia-caps", kGpu, Answer::Kind::allow, true, {}}).failure,
            AccessFailure::wrong_driver);
  EXPECT_EQ(classify(seen, {true, "", kGpu, Answer::Kind::deny, true, {}}).failure, AccessFailure::cgroup_denies);
}

TEST(Classifier, DistinguishesPermissionBitsFromSecurityModules) {
  const NodeView seen{"/dev/nvidia0", 0, kGpu, 0660, 0, 44, false, EACCES, EACCES};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, false, {}}).failure,
            AccessFailure::permission_bits);
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).failure,
            AccessFailure::security_module);
  NodeView enclosed = seen;
  enclosed.is_enclosed = true;
  NodeState state;
  OwedNode owed;
  owed.device = kGpu;
  state.owed = owed;
  state.seen = enclosed;
  state.diagnosis = classify(enclosed, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}});
  EXPECT_EQ(state.diagnosis.failure, AccessFailure::permission_bits);
  EXPECT_FALSE(can_be_recreated(state)) << "a new node would be in the same directory";
}

TEST(Classifier, DistinguishesMissingInTheContainerFromMissingOnTheHost) {
  const NodeView seen{"/dev/nvidia-uvm", ENOENT, std::nullopt, 0, 0, 0, false, ENOENT, ENOENT};
  EXPECT_EQ(classify(seen, {true, "", kGpu, Answer::Kind::allow, true, {}}).failure, AccessFailure::missing);
  EXPECT_EQ(classify(seen, {false, "", std::nullopt, Answer::Kind::allow, true, {}}).failure,
            AccessFailure::missing_on_host);
}

TEST(Classifier, DoesNotAcceptARegularFileAsADevice) {
  const NodeView seen{"/dev/nvidia0", 0, std::nullopt, 0644, 0, 0, false, 0, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).failure,
            AccessFailure::no_device_node);
}

TEST(Classifier, DetectsANodevMountWithoutOpening) {
  const NodeView seen{"/dev/nvidia0", 0, kGpu, 0666, 0, 0, true, 0, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).failure, AccessFailure::nodev_mount);
}

TEST(Classifier, UsesTheRulesWhereNoProbeWasMade) {
  const NodeView seen{"/dev/nvidia0", 0, kGpu, 0666, 0, 0, false, std::nullopt, std::nullopt};
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::deny, true, {}}).failure, AccessFailure::cgroup_denies);
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::allow, true, {}}).failure, AccessFailure::none);
  EXPECT_EQ(classify(seen, {true, "nvidia", kGpu, Answer::Kind::unknown, true, {}}).failure, AccessFailure::unknown);
}

TEST(PermissionBits, AreEvaluatedLikeInTheKernel) {
  const NodeView node{"/dev/x", 0, kGpu, 0660, 0, 44, false, {}, {}};
  EXPECT_TRUE(bits_allow(node, {0, {0}, false}));
  EXPECT_TRUE(bits_allow(node, {1000, {44}, false}));
  EXPECT_FALSE(bits_allow(node, {1000, {1000}, false}));
  EXPECT_TRUE(bits_allow(node, {1000, {1000}, true}));
  const NodeView closed{"/dev/x", 0, kGpu, 0066, 0, 44, false, {}, {}};
  EXPECT_FALSE(bits_allow(closed, {0, {44}, false}));  // the owner's bits alone count for the owner
}

NodeState node(Part part, AccessFailure failure) {
  OwedNode owed;
  owed.device_class = "nvidia";
  owed.part = part;
  owed.device = kGpu;
  NodeState state;
  state.owed = std::move(owed);
  state.seen.device = failure == AccessFailure::no_driver ? kOther : kGpu;
  state.diagnosis.failure = failure;
  return state;
}

TEST(State, OfAContainerIsDerivedFromItsNodes) {
  const NodeState good = node(Part::unit, AccessFailure::none);
  const NodeState denied = node(Part::unit, AccessFailure::cgroup_denies);
  const NodeState no_control = node(Part::control, AccessFailure::missing);
  const NodeState no_helper = node(Part::helper, AccessFailure::missing);
  const NodeState moved = node(Part::control, AccessFailure::wrong_driver);
  EXPECT_EQ(state_of({}, false), State::not_owed);
  EXPECT_EQ(state_of({good}, false), State::ok);
  EXPECT_EQ(state_of({good}, true), State::at_risk);
  EXPECT_EQ(state_of({denied}, false), State::lost);
  EXPECT_EQ(state_of({good, denied}, true), State::partial);
  EXPECT_EQ(state_of({good, no_control}, false), State::lost);
  EXPECT_EQ(state_of({good, no_helper}, false), State::partial);
  EXPECT_EQ(state_of({good, moved}, false), State::stale);
  EXPECT_EQ(state_of({good, node(Part::control, AccessFailure::no_driver)}, false), State::stale);
  EXPECT_EQ(state_of({good, node(Part::helper, AccessFailure::unknown)}, false), State::unknown);
}

NodeView seen_as(std::optional<Device> device, std::uint32_t mode) {
  NodeView seen;
  seen.device = device;
  seen.mode = mode;
  return seen;
}

struct AccessCase {
  const char* name;
  std::optional<int> expected;
  NodeView seen = seen_as(kGpu, 0666);
  Answer::Kind gates = Answer::Kind::allow;
  Credentials user = {.uid = 1000, .gids = {1000}};
  Access access = Access::read | Access::write | Access::mknod;
};

TEST(AccessByRules, IsKnownWhereBitsAllowAndRulesDecide) {
  const NodeView for_root = seen_as(kGpu, 0600);
  const NodeView other = seen_as(kOther, 0666);
  const NodeView no_device = seen_as(std::nullopt, 0666);
  NodeView enclosed = seen_as(kGpu, 0666);
  enclosed.is_enclosed = true;
  const Credentials root{.uid = 0, .gids = {0}, .overrides_bits = true};
  const Credentials mapped{.uid = 100000, .gids = {100000}, .overrides_bits = true};
  const std::vector<AccessCase> cases = {
      {.name = "allowed", .expected = 0},
      {.name = "denied", .expected = EPERM, .gates = Answer::Kind::deny},
      {.name = "rules that cannot be read", .expected = std::nullopt, .gates = Answer::Kind::unknown},
      {.name = "root", .expected = 0, .seen = for_root, .user = root},
      {.name = "bits refuse", .expected = std::nullopt, .seen = for_root},
      {.name = "root of a user namespace", .expected = std::nullopt, .seen = for_root, .user = mapped},
      {.name = "other numbers than the rules were asked for", .expected = std::nullopt, .seen = other},
      {.name = "in a directory of root", .expected = std::nullopt, .seen = enclosed},
      {.name = "in a directory of root, for root", .expected = 0, .seen = enclosed, .user = root},
      {.name = "no device", .expected = std::nullopt, .seen = no_device},
      {.name = "only reading is owed", .expected = std::nullopt, .access = Access::read}};
  for (const AccessCase& one : cases) {
    OwedNode owed;
    owed.path = "/dev/nvidia0";
    owed.device = kGpu;
    owed.access = one.access;
    EXPECT_EQ(access_by_rules(one.seen, owed, {one.gates, ""}, one.user), one.expected) << one.name;
  }
}

}  // namespace
}  // namespace hf::container
