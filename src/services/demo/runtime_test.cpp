#include "services/demo/runtime.h"

#include <gtest/gtest.h>

namespace hf::demo {
namespace {

TEST(Runtime, OnlyRuncBefore100LosesDevicesAtUpdate) {
  EXPECT_TRUE(loses_devices_at_update({"runc", "", "1.0.0~rc93+ds1"}));
  EXPECT_TRUE(loses_devices_at_update({"runc", "", "1.0.0-rc10"}));
  EXPECT_FALSE(loses_devices_at_update({"runc", "", "1.0.0"}));
  EXPECT_FALSE(loses_devices_at_update({"runc", "", "1.1.5+ds1"}));
  EXPECT_FALSE(loses_devices_at_update({"crun", "", "0.17"}));
}

TEST(Mirror, IsReadFromAListOfApt) {
  EXPECT_EQ(mirror_in_list("# deb http://no/ x main\ndeb http://a/debian-security x-security main\n"
                           "deb [arch=amd64 signed-by=/k] http://b/debian bookworm main contrib\n"),
            "deb [arch=amd64 signed-by=/k] http://b/debian");
  EXPECT_EQ(mirror_in_list("deb http://b/debian bookworm main\n"), "deb http://b/debian");
  EXPECT_EQ(mirror_in_list("deb-src http://b/debian bookworm main\ndeb http://b/debian bookworm contrib\n"),
            std::nullopt);
}

TEST(Mirror, IsReadFromStanzasOfApt) {
  const std::string security =
      "Types: deb\nURIs: http://s/debian-security\nSuites: bookworm-security\nComponents: main\n\n";
  const std::string main =
      "Types: deb deb-src\nURIs: http://b/debian http://c/debian\nSuites: bookworm\nComponents: main\n";
  EXPECT_EQ(mirror_in_stanzas(security + main + "Signed-By: /k.gpg\n"), "deb [signed-by=/k.gpg] http://b/debian");
  EXPECT_EQ(mirror_in_stanzas(security + main), "deb http://b/debian");
  EXPECT_EQ(mirror_in_stanzas(security), std::nullopt);
}

}  // namespace
}  // namespace hf::demo
