#include "render/notice.h"

#include <gtest/gtest.h>

namespace hf::notice {
namespace {

const container::Pod kPod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};

PodEvent event_with(Reason reason) {
  PodEvent event;
  event.pod = kPod;
  event.reason = reason;
  event.devices = {"/dev/nvidia0", "/dev/nvidiactl"};
  event.writer = {container::Pid{90}, "systemctl", "", "systemctl daemon-reload --secret", {}, "systemd", {}, ""};
  return event;
}

TEST(Message, SaysWhatWhoAndHowLong) {
  PodEvent restored = event_with(Reason::device_restored);
  restored.duration = 3'200'000;
  PodEvent lost = event_with(Reason::device_lost);
  lost.detail = "a gate above refuses it";
  PodEvent risk = event_with(Reason::device_at_risk);
  risk.detail = "HF-201: systemd does not know its GPU";
  const std::vector<std::pair<PodEvent, std::string>> table = {
      {restored,
       "container main can use /dev/nvidia0, /dev/nvidiactl again after 3.2 ms: its device rules were rewritten by "
       "systemctl (pid 90) for systemd"},
      {lost,
       "container main cannot use /dev/nvidia0, /dev/nvidiactl: its device rules were rewritten by systemctl (pid 90) "
       "for systemd; a gate above refuses it"},
      {event_with(Reason::device_shielded),
       "container main kept /dev/nvidia0, /dev/nvidiactl open: its device rules were rewritten by systemctl (pid 90) "
       "for systemd"},
      {risk, "container main may lose devices at the next reload or update: HF-201: systemd does not know its GPU"},
      {event_with(Reason::device_set_completed),
       "container main got /dev/nvidia0, /dev/nvidiactl, which its runtime had not given it"},
      {event_with(Reason::device_request_ignored),
       "container main asks for devices that no trusted source gives it, and runs without them: request them in the "
       "pod's resources"},
  };
  for (const auto& [event, text] : table) {
    EXPECT_EQ(render_message(event), text);
  }
}

TEST(Message, IsOneShortLineWhateverTheNamesAre) {
  PodEvent event = event_with(Reason::device_lost);
  event.devices.assign(1000, "/dev/x\n\x1b[31m");
  event.writer.name = std::string(5000, '\xff');
  event.detail = std::string(5000, 'x');
  const std::string text = render_message(event);
  EXPECT_LE(text.size(), 1024U);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace hf::notice
