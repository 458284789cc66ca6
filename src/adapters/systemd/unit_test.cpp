#include "adapters/systemd/unit.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::systemd {
namespace {

using test::FakeHost;
using test::Files;
using Strings = std::vector<std::string>;

constexpr const char* kScope = "docker-1.scope";

FakeHost host_with(Files files) {
  files["proc/self/mountinfo"] = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  return FakeHost(files);
}

UnitDevices read(const std::string& text) {
  UnitDevices unit;
  apply_unit_file(text.starts_with('[') ? text : "[Scope]\n" + text, unit);
  return unit;
}

const device::DeviceAllowContext kOptions = {
    device::parse_driver_names("Character devices:\n  1 mem\n136 pts\n195 nvidia\n"), [](const std::string& path) {
      return path == "/dev/nvidia0" ? std::optional(device::Device{device::Kind::character, 195, 0}) : std::nullopt;
    }};

bool allows(const UnitDevices& unit, const std::string& request) {
  return meaning(unit, kOptions).allows(*device::parse_request(request));
}

TEST(UnitFile, IsReadAsSystemdWritesADropIn) {
  const UnitDevices unit = read(
      "# This is a drop-in unit file extension, created via \"systemctl set-property\"\n"
      "[Scope]\nDevicePolicy=strict\nDeviceAllow=\nDeviceAllow=char-pts rwm\n  DeviceAllow = /dev/char/5:2 rwm  \r\n"
      ";DeviceAllow=/dev/a\n#DeviceAllow=/dev/b\nDelegate=yes\nBPFProgram=device:/sys/fs/bpf/x\nBPFProgram=egress:/"
      "y\n");
  EXPECT_EQ(unit.policy, DevicePolicy::strict);
  EXPECT_EQ(unit.allow, (Strings{"char-pts rwm", "/dev/char/5:2 rwm"}));
  EXPECT_EQ(unit.pinned, Strings{"/sys/fs/bpf/x"});
}

TEST(UnitFile, ClearsTheListAtAnEmptyDeviceAllow) {
  EXPECT_EQ(read("DeviceAllow=/dev/a\nDeviceAllow=\nDeviceAllow=/dev/b\n").allow, Strings{"/dev/b"});
  EXPECT_TRUE(read("DeviceAllow=/dev/a\nDeviceAllow=  \n").allow.empty());
}

TEST(UnitFile, IgnoresLinesThatAreNoSettings) {
  for (const std::string& text :
       {std::string(), std::string("="), std::string("DeviceAllow"), std::string("\xff\xfe=\x01\n="),
        std::string("[Scope"), std::string(100'000, '='), std::string("Device Allow=/dev/x")}) {
    EXPECT_TRUE(read(text).allow.empty()) << text.substr(0, 20);
    EXPECT_EQ(read(text).policy, DevicePolicy::automatic) << text.substr(0, 20);
  }
}

TEST(Unit, MergesItsDropInsInTheOrderOfTheirNames) {
  const FakeHost host =
      host_with({{"run/systemd/transient/docker-1.scope", "[Scope]\nDelegate=yes\nDeviceAllow=/dev/first\n"},
                 {"run/systemd/transient/docker-1.scope.d/50-DeviceAllow.conf",
                  "[Scope]\nDeviceAllow=\nDeviceAllow=/dev/transient\n"},
                 {"run/systemd/transient/docker-1.scope.d/50-DevicePolicy.conf", "[Scope]\nDevicePolicy=strict\n"},
                 {"etc/systemd/system/docker-1.scope.d/60-more.conf", "[Scope]\nDeviceAllow=/dev/more\n"},
                 {"usr/lib/systemd/system/docker-1.scope.d/10-early.conf", "[Scope]\nDeviceAllow=/dev/early\n"},
                 {"etc/systemd/system/docker-1.scope.d/readme", "[Scope]\nDeviceAllow=/dev/readme\n"}});
  const std::optional<UnitDevices> unit = read_unit_devices(host.open(), kScope);
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->allow, (Strings{"/dev/transient", "/dev/more"}));
  EXPECT_EQ(unit->policy, DevicePolicy::strict);
  EXPECT_EQ(unit->files.size(), 5U);
}

TEST(Unit, PrefersTheDirectoriesAsSystemdDoes) {
  const FakeHost host =
      host_with({{"etc/systemd/system.control/docker-1.scope.d/50.conf", "[Scope]\nDeviceAllow=/dev/control\n"},
                 {"run/systemd/transient/docker-1.scope.d/50.conf", "[Scope]\nDeviceAllow=/dev/transient\n"},
                 {"etc/systemd/system/docker-1.scope", "[Scope]\nDeviceAllow=/dev/etc\n"},
                 {"usr/lib/systemd/system/docker-1.scope", "[Scope]\nDeviceAllow=/dev/usr\n"}});
  EXPECT_EQ(read_unit_devices(host.open(), kScope)->allow, (Strings{"/dev/etc", "/dev/control"}));
}

TEST(Unit, IsAbsentWhereSystemdHasNoFileOfIt) {
  const FakeHost host = host_with({{"run/systemd/transient/docker-1.scope", ""}, {"run/systemd/transient/x", ""}});
  for (const char* name : {"", "docker-2.scope", "../transient/x", "a/b", "/", "."}) {
    EXPECT_FALSE(read_unit_devices(host.open(), name)) << name;
  }
  EXPECT_TRUE(read_unit_devices(host.open(), kScope));
}

TEST(Unit, IgnoresADropInThatIsMasked) {
  const FakeHost host =
      host_with({{"run/systemd/transient/docker-1.scope", "[Scope]\nDeviceAllow=/dev/a\n"},
                 {"usr/lib/systemd/system/docker-1.scope.d/50.conf", "[Scope]\nDeviceAllow=/dev/hidden\n"},
                 {"etc/systemd/system/docker-1.scope.d/", ""}});
  std::filesystem::create_symlink("/dev/null", host.root() + "/etc/systemd/system/docker-1.scope.d/50.conf");
  EXPECT_EQ(read_unit_devices(host.open(), kScope)->allow, Strings{"/dev/a"});
}

TEST(Meaning, OfAUnitWithoutPolicyAndListIsEverything) {
  EXPECT_EQ(meaning(UnitDevices(), kOptions), device::Table::everything());
}

TEST(Meaning, OfAStrictUnitIsItsList) {
  const UnitDevices unit = read("DevicePolicy=strict\nDeviceAllow=/dev/nvidia0 rw\n");
  EXPECT_EQ(meaning(unit, kOptions), device::Table::of_rules(device::RuleSet{*device::parse_rule("c 195:0 rw")}));
  EXPECT_EQ(meaning(read("DevicePolicy=strict\n"), kOptions), device::Table());
}

TEST(Meaning, OfAClosedUnitIncludesTheStandardDevices) {
  for (const char* text : {"DevicePolicy=closed\nDeviceAllow=/dev/nvidia0 rw\n", "DeviceAllow=/dev/nvidia0 rw\n"}) {
    const UnitDevices unit = read(text);
    for (const char* request : {"c:195:0:rw", "c:1:3:rwm", "c:1:5:rwm", "c:1:7:rwm", "c:1:8:rwm", "c:1:9:rwm",
                                "c:5:0:rwm", "c:5:2:rwm", "c:136:7:rw"}) {
      EXPECT_TRUE(allows(unit, request)) << text << request;
    }
    for (const char* request : {"c:195:0:m", "c:195:1:r", "b:8:0:r", "c:1:1:r"}) {
      EXPECT_FALSE(allows(unit, request)) << text << request;
    }
  }
}

// systemd: bpf_devices_allow_list_static(): pts "may not be duplicated, but accessed", and no console.
TEST(Meaning, OfAClosedUnitIsNoMoreThanSystemdsOwnList) {
  const UnitDevices unit = read("DevicePolicy=closed\n");
  EXPECT_FALSE(allows(unit, "c:136:0:m"));
  EXPECT_FALSE(allows(unit, "c:5:1:r"));
}

TEST(Meaning, IgnoresEntriesThatSystemdDoesNotKnow) {
  const UnitDevices unit = read(
      "DevicePolicy=strict\nDeviceAllow=/dev/gone rw\nDeviceAllow=bogus\nDeviceAllow=/dev/nvidia0 "
      "x\nDeviceAllow=char-nvidia r\n");
  EXPECT_EQ(meaning(unit, kOptions), device::Table::of_rules(device::RuleSet{*device::parse_rule("c 195:* r")}));
}

TEST(Systemd, IsRunningWhenItsRuntimeDirectoryExists) {
  EXPECT_FALSE(is_running(host_with({}).open()));
  EXPECT_TRUE(is_running(host_with({{"run/systemd/system/", ""}}).open()));
}

// systemd ignores a policy it does not know, and keeps the previous one.
TEST(UnitFile, KeepsThePolicyWhenALaterOneIsUnknown) {
  EXPECT_EQ(read("DevicePolicy=strict\nDevicePolicy=bogus\n").policy, DevicePolicy::strict);
}

TEST(UnitFile, AppliesInTheUnitsOwnSectionOnly) {
  EXPECT_EQ(read("[X-Other]\nDevicePolicy=strict\n").policy, DevicePolicy::automatic);
}

TEST(UnitFile, JoinsALineThatEndsInABackslash) {
  EXPECT_EQ(read("DeviceAllow=/dev/a \\\n rw\n").allow, Strings{"/dev/a  rw"});
}

}  // namespace
}  // namespace hf::systemd
