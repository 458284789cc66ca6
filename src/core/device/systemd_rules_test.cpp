#include "core/device/systemd_rules.h"

#include <gtest/gtest.h>

namespace hf::device {
namespace {

const DeviceAllowContext kContext = {
    parse_driver_names(
        "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n507 nvidia-uvm\n\nBlock devices:\n  8 sd\n 65 sd\n"),
    [](const std::string& path) {
      return path == "/dev/null" ? std::optional<Device>({Kind::character, 1, 3}) : std::nullopt;
    }};

std::string text(const RuleSet& rules) {
  std::string lines;
  for (const Rule& rule : rules) {
    lines += to_string(rule) + ";";
  }
  return lines;
}

TEST(DeviceAllow, ReadsEveryFormSystemdKnows) {
  const std::pair<const char*, const char*> cases[] = {
      {"/dev/char/195:0 rw", "c 195:0 rw;"},
      {"/dev/block/8:1 r", "b 8:1 r;"},
      {"/dev/null", "c 1:3 rwm;"},
      {"char-195 rw", "c 195:* rw;"},
      {"char-nvidia-uvm rw", "c 507:* rw;"},
      {"char-* m", "c *:* m;"},
      {"block-sd r", "b 8:* r;b 65:* r;"},
      {"char-nvidia* rw", "c 195:* rw;c 507:* rw;c 195:* rw;"},
      {"/dev/absent rw", ""},
      {"char-absent rw", ""},
  };
  for (const auto& [entry, rules] : cases) {
    EXPECT_EQ(text(*parse_device_allow(entry, kContext)), rules) << entry;
  }
}

TEST(DeviceAllow, RefusesMalformedEntries) {
  for (const char* entry : {"", "null rw", "/dev/null rw more", "/dev/null x", "char-195 rr"}) {
    EXPECT_FALSE(parse_device_allow(entry, kContext)) << entry;
  }
}

TEST(DeviceAllow, IsParsedBackToTheSameRule) {
  for (const char* line : {"c 195:0 rw", "b 8:* r", "c *:* m"}) {
    const Rule rule = *parse_rule(line);
    EXPECT_EQ(parse_device_allow(*to_device_allow(rule), kContext), RuleSet{rule});
  }
  for (const char* line : {"c *:7 rw", "c 195:0-7 rw", "a *:* rwm"}) {
    EXPECT_FALSE(to_device_allow(*parse_rule(line))) << line;
  }
}

}  // namespace
}  // namespace hf::device
