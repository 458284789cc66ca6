#include "adapters/systemd/message.h"

#include <gtest/gtest.h>

namespace hf::systemd {
namespace {

using Texts = std::vector<std::string>;

const Call kGetUnit = {"org.freedesktop.systemd1",
                       "/org/freedesktop/systemd1",
                       "org.freedesktop.systemd1.Manager",
                       "GetUnit",
                       {"a.scope"}};

TEST(Message, IsParsedAsItWasRendered) {
  const std::string bytes = render_call(kGetUnit, 7).value();
  EXPECT_EQ(*length_of_first(bytes), bytes.size());
  const Message message = parse_message(bytes).value();
  EXPECT_EQ(message.kind, Message::Kind::call);
  EXPECT_EQ(message.member, "GetUnit");
  EXPECT_EQ(message.interface, "org.freedesktop.systemd1.Manager");
  EXPECT_EQ(message.texts, Texts{"a.scope"});
}

TEST(Message, CarriesAListOfDevicesInAProperty) {
  const std::vector<DeviceEntry> entries = {
      {{device::Kind::character, 195, 0}, device::Access::read | device::Access::write},
      {{device::Kind::block, 8, 0}, device::Access::all}};
  const Message message = parse_message(render_device_allow(kGetUnit, entries, 1).value()).value();
  EXPECT_EQ(message.texts, (Texts{"a.scope", "DeviceAllow", "/dev/char/195:0", "rw", "/dev/block/8:0", "rwm"}));
  EXPECT_EQ(message.flags, std::vector<bool>{true});
}

TEST(Message, HasAKnownLengthBeforeItIsComplete) {
  const std::string bytes = render_call(kGetUnit, 7).value();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(*length_of_first(bytes.substr(0, length)), length < 16 ? 0U : bytes.size()) << length;
    EXPECT_FALSE(parse_message(bytes.substr(0, length))) << length;
  }
  EXPECT_EQ(*length_of_first(bytes + "more"), bytes.size());
}

TEST(Message, IsParsedSafelyWithADamagedByte) {
  const std::string bytes = render_call(kGetUnit, 7).value();
  for (std::size_t offset = 0; offset < bytes.size(); ++offset) {
    for (const char byte : {'\0', '\x01', '\x7f', '\xff'}) {
      std::string damaged = bytes;
      damaged[offset] = byte;
      const Result<std::size_t> length = length_of_first(damaged);
      if (length && *length <= damaged.size()) {
        (void)parse_message(damaged);
      }
    }
  }
  EXPECT_EQ(length_of_first("HTTP/1.1 400 Bad Request").error().code, std::errc::bad_message);
  std::string endless = bytes;
  endless[7] = '\x07';  // a body of 112 MiB
  EXPECT_EQ(length_of_first(endless).error().code, std::errc::bad_message);
}

TEST(Call, IsRefusedWithAnInvalidArgumentOrPath) {
  using namespace std::string_literals;
  for (const std::string& text : {"\xff"s, "a\0b"s}) {
    Call call = kGetUnit;
    call.arguments = {text};
    EXPECT_EQ(render_call(call, 1).error().code, std::errc::invalid_argument);
  }
  for (const std::string& path : {""s, "a"s, "/a/"s, "/a-b"s, "//"s}) {
    Call call = kGetUnit;
    call.path = path;
    EXPECT_EQ(render_call(call, 1).error().code, std::errc::invalid_argument) << path;
  }
}

TEST(ErrorName, MapsToAnErrorCode) {
  EXPECT_EQ(code_of("org.freedesktop.systemd1.NoSuchUnit"), std::errc::no_such_file_or_directory);
  EXPECT_EQ(code_of("org.freedesktop.DBus.Error.AccessDenied"), std::errc::permission_denied);
  EXPECT_EQ(code_of("org.example.Whatever"), std::errc::io_error);
}

}  // namespace
}  // namespace hf::systemd
