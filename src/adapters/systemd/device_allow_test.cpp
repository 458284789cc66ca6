#include "adapters/systemd/device_allow.h"

#include <gtest/gtest.h>

namespace hf::systemd {
namespace {

using device::Access;
using device::Kind;
using Entries = std::vector<DeviceEntry>;
using Strings = std::vector<std::string>;

constexpr device::Device kGpu = {Kind::character, 195, 0};
constexpr device::Device kDisk = {Kind::block, 8, 16};
constexpr Access kReadWrite = Access::read | Access::write;

Entries missing(const Strings& allow, const Entries& wanted, DevicePolicy policy = DevicePolicy::strict) {
  return plan_additions(UnitDevices{policy, allow, {}, {}}, wanted).value();
}

TEST(DeviceEntry, IsRenderedAsAPathThatNeedsNoDeviceNode) {
  EXPECT_EQ(to_string(DeviceEntry{kGpu, kReadWrite}), "/dev/char/195:0 rw");
  EXPECT_EQ(to_string(DeviceEntry{kDisk, Access::all}), "/dev/block/8:16 rwm");
}

TEST(Interface, DependsOnTheTypeOfTheUnit) {
  EXPECT_EQ(*interface_of("docker-4f1c.scope"), "org.freedesktop.systemd1.Scope");
  EXPECT_EQ(*interface_of("user@1000.service"), "org.freedesktop.systemd1.Service");
  EXPECT_EQ(*interface_of("a\\x2db.c:d_e.slice"), "org.freedesktop.systemd1.Slice");
}

TEST(Interface, IsRefusedForNamesThatAreNoUnitWithProcesses) {
  using namespace std::string_literals;
  for (const std::string& name : {""s, ".scope"s, "@.scope"s, "scope"s, "a.scope "s, "a.target"s, "a.device"s,
                                  "a.scopex"s, "a/b.scope"s, "../a.scope"s, "a\n.scope"s, "a\0.scope"s, "\xff.scope"s,
                                  "ä.scope"s, "a*.scope"s, "a'b.scope"s, std::string(250, 'a') + ".scope"}) {
    EXPECT_EQ(interface_of(name).error().code, std::errc::invalid_argument) << name;
    EXPECT_EQ(interface_of(name).error().message.find('\n'), std::string::npos);
  }
  EXPECT_TRUE(interface_of(std::string(249, 'a') + ".scope"));
}

TEST(Additions, AreWhatTheListLacks) {
  const Entries wanted = {{kGpu, kReadWrite}, {kDisk, Access::read}};
  EXPECT_EQ(missing({}, wanted), wanted);
  EXPECT_EQ(missing({"/dev/char/195:0 rw", "/dev/char/195:01 m"}, wanted), (Entries{{kDisk, Access::read}}));
  EXPECT_EQ(missing({"/dev/char/195:0 rwm", "/dev/block/8:16 rw"}, wanted), Entries());
  EXPECT_EQ(missing({"/dev/nvidia0 rw", "char-pts rwm"}, wanted), wanted);
  EXPECT_EQ(missing({"/dev/char/1:3 rwm"}, {}), Entries());
}

// systemd: an entry for a path that is in the list replaces the access bits of the old one
// (cgroup_context_add_or_update_device_allow, src/core/cgroup.c).
TEST(Additions, KeepTheAccessBitsOfTheOldEntry) {
  EXPECT_EQ(missing({"/dev/char/195:0 m"}, {{kGpu, kReadWrite}}), (Entries{{kGpu, Access::all}}));
  EXPECT_EQ(missing({"/dev/char/195:0"}, {{kGpu, Access::read}}), (Entries{{kGpu, Access::read}}));
  EXPECT_EQ(missing({"/dev/char/195:0 bogus"}, {{kGpu, Access::read}}), (Entries{{kGpu, Access::read}}));
}

TEST(Additions, MergeEntriesForTheSameDevice) {
  EXPECT_EQ(missing({}, {{kGpu, Access::read}, {kGpu, Access::write}}), (Entries{{kGpu, kReadWrite}}));
}

// systemd: DevicePolicy=auto with a list is closed, without one it allows everything.
TEST(Additions, DoNotRestrictAUnitThatAllowsEverything) {
  EXPECT_EQ(missing({}, {{kGpu, kReadWrite}}, DevicePolicy::automatic), Entries());
  EXPECT_EQ(missing({}, {{kGpu, kReadWrite}}, DevicePolicy::closed).size(), 1U);
  EXPECT_EQ(missing({"/dev/char/1:3 rwm"}, {{kGpu, kReadWrite}}, DevicePolicy::automatic).size(), 1U);
}

TEST(Additions, AreRefusedForADeviceThatCannotExist) {
  for (const DeviceEntry& entry : {DeviceEntry{kGpu, Access::none}, DeviceEntry{{Kind::character, 4096, 0}, kReadWrite},
                                   DeviceEntry{{Kind::character, 1, 1U << 20}, kReadWrite}}) {
    EXPECT_EQ(plan_additions(UnitDevices(), {entry}).error().code, std::errc::invalid_argument) << to_string(entry);
  }
}

}  // namespace
}  // namespace hf::systemd
