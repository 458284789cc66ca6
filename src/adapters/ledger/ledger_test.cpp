#include "adapters/ledger/ledger.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::ledger {
namespace {

using test::FakeHost;

Entry entry_of(const std::string& id) {
  Entry entry;
  entry.container.value = id;
  entry.bundle = "/run/bundles/\"web\"";
  entry.nodes = {
      {"/dev/nvidia0", device::Device{device::Kind::character, 195, 0}, device::Access::read},
      {"/dev/sda", device::Device{device::Kind::block, device::kLastMajor, device::kLastMinor}, device::Access::all}};
  return entry;
}

FakeHost host_with(const std::string& file, const std::string& text) {
  return FakeHost({{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}, {file, text}});
}

std::string node_with(const std::string& members) {
  return R"({"version":1,"container":"web","nodes":[)" + members + "]}";
}

TEST(LedgerEntry, IsParsedAsItWasWritten) {
  const Result<Entry> entry = parse_entry(render_entry(entry_of("web")));
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->container.value, "web");
  EXPECT_EQ(entry->bundle, "/run/bundles/\"web\"");
  ASSERT_EQ(entry->nodes.size(), 2U);
  EXPECT_EQ(entry->nodes[0].path, "/dev/nvidia0");
  EXPECT_EQ(entry->nodes[0].claimed, (device::Device{device::Kind::character, 195, 0}));
  EXPECT_EQ(entry->nodes[0].access, device::Access::read);
  EXPECT_EQ(entry->nodes[1].claimed, (device::Device{device::Kind::block, device::kLastMajor, device::kLastMinor}));
  EXPECT_EQ(render_entry(*entry), render_entry(entry_of("web")));
}

TEST(LedgerEntry, MayHaveNoNodes) {
  Entry entry;
  entry.container.value = "web";
  EXPECT_FALSE(parse_entry(render_entry(entry))) << "it has neither a bundle nor a cgroup";
  entry.cgroup = "/web";
  ASSERT_TRUE(parse_entry(render_entry(entry)));
  EXPECT_TRUE(parse_entry(render_entry(entry))->nodes.empty());
}

TEST(LedgerEntry, IsRefusedWhenItIsDamaged) {
  for (const char* json :
       {"", "null", "[]", "{", "{}", R"({"version":2,"container":"web","nodes":[]})",
        R"({"version":"1","container":"web","nodes":[]})", R"({"version":1,"nodes":[]})",
        R"({"version":1,"container":7,"nodes":[]})", R"({"version":1,"container":"web"})",
        R"({"version":1,"container":"web","nodes":{}})", "{\"version\":1,\"container\":\"\xff\",\"nodes\":[]}"}) {
    const Result<Entry> entry = parse_entry(json);
    ASSERT_FALSE(entry) << json;
    EXPECT_TRUE(entry.error().message.starts_with("parse ledger entry: ")) << json;
  }
}

TEST(LedgerEntry, IsRefusedForOneInvalidNode) {
  for (const char* node : {"1", "null", "[]", "{}", R"({"path":"dev/x","type":"c","major":1,"minor":3,"access":"r"})",
                           R"({"path":7,"type":"c","major":1,"minor":3,"access":"r"})",
                           R"({"path":"/x","type":"u","major":1,"minor":3,"access":"r"})",
                           R"({"path":"/x","type":"c","major":4096,"minor":3,"access":"r"})",
                           R"({"path":"/x","type":"c","major":-1,"minor":3,"access":"r"})",
                           R"({"path":"/x","type":"c","major":"1","minor":3,"access":"r"})",
                           R"({"path":"/x","type":"c","minor":3,"access":"r"})",
                           R"({"path":"/x","type":"c","major":1,"minor":18446744073709551615,"access":"r"})",
                           R"({"path":"/x","type":"c","major":1.0,"minor":3,"access":"r"})",
                           R"({"path":"/x","type":"c","major":1,"minor":3,"access":""})",
                           R"({"path":"/x","type":"c","major":1,"minor":3,"access":"x"})",
                           R"({"path":"/x","type":"c","major":1,"minor":3})"}) {
    EXPECT_FALSE(parse_entry(node_with(node))) << node;
    EXPECT_FALSE(
        parse_entry(node_with(R"({"path":"/x","type":"c","major":1,"minor":3,"access":"r"},)" + std::string(node))))
        << node;
  }
}

TEST(Ledger, ReadsTheEntryOfAContainer) {
  const FakeHost host = host_with("run/holdfast/ledger/web.json", render_entry(entry_of("web")));
  const Result<std::optional<Entry>> entry = read_entry(host.open(), {"web"});
  ASSERT_TRUE(entry) << entry.error().message;
  ASSERT_TRUE(*entry);
  EXPECT_EQ((*entry)->nodes.size(), 2U);
  for (const char* id : {"", "other", ".", "..", "../ledger/web", ".web", "web.json"}) {
    const Result<std::optional<Entry>> none = read_entry(host.open(), {id});
    ASSERT_TRUE(none) << id;
    EXPECT_FALSE(*none) << id;
  }
}

TEST(Ledger, DoesNotTrustAFileThatOthersMayWrite) {
  const FakeHost host = host_with("run/holdfast/ledger/web.json", render_entry(entry_of("web")));
  const std::string file = host.root() + "/run/holdfast/ledger/web.json";
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(read_entry(host.open(), {"web"}).error().code, std::errc::permission_denied);
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  if (::chown(file.c_str(), 1000, 1000) != 0) {
    GTEST_SKIP() << "only root can change the owner of a file";
  }
  EXPECT_EQ(read_entry(host.open(), {"web"}).error().code, std::errc::permission_denied);
}

TEST(Ledger, DoesNotFollowASymlink) {
  const FakeHost host = host_with("run/holdfast/ledger/real.json", render_entry(entry_of("web")));
  std::filesystem::create_symlink("real.json", host.root() + "/run/holdfast/ledger/web.json");
  EXPECT_FALSE(read_entry(host.open(), {"web"}));
}

TEST(Ledger, NamesTheFileThatIsDamagedOrOfAnotherContainer) {
  for (const std::string& text : {std::string("{"), render_entry(entry_of("other")), std::string()}) {
    const FakeHost host = host_with("run/holdfast/ledger/web.json", text);
    const Result<std::optional<Entry>> entry = read_entry(host.open(), {"web"});
    ASSERT_FALSE(entry) << text;
    EXPECT_NE(entry.error().message.find("/run/holdfast/ledger/web.json"), std::string::npos) << entry.error().message;
  }
}

TEST(Ledger, KeepsAnEntryForRootAloneUntilItIsRemoved) {
  const FakeHost fake = host_with("run/other", "");
  const kernel::Host host = fake.open();
  ASSERT_TRUE(save_entry(host, entry_of("web")));
  struct stat status{};
  ASSERT_EQ(::stat((fake.root() + "/run/holdfast/ledger/web.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const Result<std::optional<Entry>> entry = read_entry(host, {"web"});
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->bundle, entry_of("web").bundle);
  remove_empty_directory(host);
  EXPECT_TRUE(std::filesystem::exists(fake.root() + "/run/holdfast/ledger/web.json")) << "it is not empty";
  remove_entry(host, {"web"});
  remove_entry(host, {"../../other"});
  remove_empty_directory(host);
  EXPECT_FALSE(std::filesystem::exists(fake.root() + "/run/holdfast"));
  EXPECT_TRUE(std::filesystem::exists(fake.root() + "/run/other"));
  EXPECT_FALSE(save_entry(host, entry_of("../other")));
}

TEST(Ledger, RemovesEntriesOfBundlesThatAreGone) {
  const FakeHost fake = host_with("run/bundles/there/config.json", "{}");
  const kernel::Host host = fake.open();
  Entry there = entry_of("there");
  there.bundle = "/run/bundles/there";
  Entry gone = entry_of("gone");
  gone.bundle = "/run/bundles/gone";
  Entry by_cgroup = entry_of("cgroup");
  by_cgroup.bundle = "";
  by_cgroup.cgroup = "/x";
  for (const Entry& entry : {there, gone, by_cgroup}) {
    ASSERT_TRUE(save_entry(host, entry));
  }
  remove_orphans(host);
  EXPECT_TRUE(*read_entry(host, {"there"}));
  EXPECT_FALSE(*read_entry(host, {"gone"}));
  EXPECT_TRUE(*read_entry(host, {"cgroup"}));
}

// Missing device numbers written as 0:0 would be read as those of a device that does not exist.
TEST(LedgerEntry, DoesNotInventDeviceNumbers) {
  Entry entry;
  entry.container.value = "web";
  entry.nodes = {{"/dev/nvidia0", std::nullopt, device::Access::read}};
  const Result<Entry> read = parse_entry(render_entry(entry));
  EXPECT_FALSE(read && read->nodes.at(0).claimed);
}

}  // namespace
}  // namespace hf::ledger
