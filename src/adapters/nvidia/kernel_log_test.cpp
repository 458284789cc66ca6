#include "adapters/nvidia/kernel_log.h"

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::nvidia {
namespace {

using Kind = LogEvent::Kind;

TEST(KernelLog, ReportsTheErrorsOfTheDriver) {
  struct Case {
    const char* line;
    Kind kind;
    std::uint32_t xid;
    const char* pci;
  };
  for (const Case& entry : {
           Case{"3,1023,5,-;NVRM: Xid (PCI:0000:65:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
                Kind::xid, 79, "0000:65:00"},
           Case{"3,1024,6,-;NVRM: Xid (PCI:0000:CA:00): 31, Ch 00000010", Kind::xid, 31, "0000:CA:00"},
           Case{"[  9.1] NVRM: Xid (0000:65:00): 13, Graphics Exception", Kind::xid, 13, ""},
           Case{"NVRM: The NVIDIA GPU 0000:65:00.0 (PCI ID: 10de:2335): GPU has fallen off the bus and is not",
                Kind::lost, 0, ""},
           Case{"NVRM: API mismatch: the client has the version 550.54.15, but", Kind::version_mismatch, 0, ""},
       }) {
    const std::vector<LogEvent> events = parse_kernel_log(entry.line);
    ASSERT_EQ(events.size(), 1U) << entry.line;
    EXPECT_EQ(events[0].kind, entry.kind) << entry.line;
    EXPECT_EQ(events[0].xid, entry.xid) << entry.line;
    EXPECT_TRUE(events[0].pci.starts_with(entry.pci)) << entry.line;
    EXPECT_TRUE(events[0].line.starts_with("NVRM:")) << events[0].line;
  }
  EXPECT_EQ(parse_kernel_log("NVRM: GPU 0000:65:00.0: RmInitAdapter failed! (0x26:0x56:1474)")[0].kind,
            Kind::initialisation_failed);
  EXPECT_EQ(parse_kernel_log("NVRM: GPU 0000:65:00.0: rm_init_adapter failed, device minor number 0")[0].kind,
            Kind::initialisation_failed);
  EXPECT_EQ(parse_kernel_log("NVRM: open() not permitted for excluded GPU: 0000:65:00.0")[0].kind, Kind::excluded);
}

TEST(KernelLog, SkipsEverythingElse) {
  for (const char* text :
       {"", "\n\n", "6,1,1,-;usb 1-1: new device", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.159.03",
        "Xid (PCI:0000:65:00): 79", "NVRM: Xid (PCI:0000:65:00)", "NVRM: Xid (PCI:0000:65:00): x",
        "NVRM: Xid (PCI:0000:65:00): 99999999999", "NVRM: Xid (", "NVRM:", "NVRM: Xid (): ", "\xff\xfe\x80"}) {
    EXPECT_TRUE(parse_kernel_log(text).empty()) << text;
  }
}

TEST(KernelLog, KeepsTheOrderOfTheLines) {
  const std::vector<LogEvent> events =
      parse_kernel_log("NVRM: Xid (PCI:0000:65:00): 79, a\nother\nNVRM: Xid (PCI:0000:66:00): 154, b\n");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].xid, 79U);
  EXPECT_EQ(events[1].xid, 154U);
}

TEST(KernelLog, IsReadFromTheHostAndMayBeMissing) {
  test::Files files = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}};
  EXPECT_TRUE(read_kernel_log(test::FakeHost(files).open()).empty());
  files["dev/kmsg"] = "3,1,1,-;NVRM: Xid (PCI:0000:65:00): 79, a\n";
  EXPECT_EQ(read_kernel_log(test::FakeHost(files).open()).size(), 1U);
}

TEST(KernelLog, FindsThePciAddressInEveryFormOfLine) {
  for (const char* line : {"NVRM: GPU 0000:65:00.0: RmInitAdapter failed! (0x26:0x56:1474)",
                           "NVRM: GPU at PCI:0000:65:00: GPU has fallen off the bus",
                           "NVRM: The NVIDIA GPU 0000:65:00.0 (PCI ID: 10de:2335): GPU has fallen off the bus"}) {
    const std::string pci = parse_kernel_log(line).at(0).pci;
    EXPECT_TRUE(pci == "0000:65:00" || pci == "0000:65:00.0") << pci;
  }
}

TEST(KernelLog, IgnoresWhatAProgramWroteToIt) {
  EXPECT_EQ(parse_kernel_log("4,7,99,-;NVRM: Xid (PCI:0000:65:00): 79, a\n").size(), 1U);
  EXPECT_TRUE(parse_kernel_log("12,8,99,-;NVRM: Xid (PCI:0000:65:00): 79, a\n").empty());
}

}  // namespace
}  // namespace hf::nvidia
