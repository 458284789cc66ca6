#include "adapters/nvidia/settings.h"

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

TEST(NvidiaSettings, AreReadFromTheirTables) {
  const Result<Settings> settings = parse_settings(
      "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n"
      "swarm-resource = \"DOCKER_RESOURCE_GPU\"\n"
      "[nvidia-container-cli]\n"
      "no-cgroups = true\n"
      "[nvidia-container-runtime]\n"
      "mode = \"cdi\"\n"
      "runtimes = [\"runc\", \"crun\"]\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(settings->no_cgroups);
  EXPECT_FALSE(settings->accepts_environment);
  EXPECT_EQ(settings->mode, "cdi");
}

TEST(NvidiaSettings, AreTheDefaultsWhereTheFileDoesNotSetThem) {
  for (const char* toml : {"", "# no-cgroups = true\n", "[nvidia-container-cli]\n#no-cgroups = true\n",
                           "no-cgroups = true", "[nvidia-container-runtime.modes.cdi]\nmode = \"legacy\"\n"}) {
    const Result<Settings> settings = parse_settings(toml);
    ASSERT_TRUE(settings) << toml;
    EXPECT_FALSE(settings->no_cgroups) << toml;
    EXPECT_TRUE(settings->accepts_environment) << toml;
    EXPECT_EQ(settings->mode, "auto") << toml;
  }
}

TEST(NvidiaSettings, OfAnotherTypeAreIgnored) {
  const Result<Settings> settings =
      parse_settings("nvidia-container-runtime = \"runc\"\n[nvidia-container-cli]\nno-cgroups = \"true\"\n");
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->no_cgroups);
  EXPECT_EQ(settings->mode, "auto");
}

TEST(NvidiaSettings, ThatAreNotTomlAreAnErrorThatNamesTheFile) {
  const std::string deep = "a = " + std::string(100'000, '[');
  for (const std::string& toml :
       {std::string("mode = \n"), std::string("[nvidia-container-cli\n"), std::string("a = 1\na = 2\n"),
        std::string("\xff\xfe"), std::string("{}"), std::string("["), std::string("[{}]\n"), deep}) {
    const Result<Settings> settings = parse_settings(toml);
    ASSERT_FALSE(settings) << toml.substr(0, 40);
    EXPECT_NE(settings.error().message.find(kSettingsFile), std::string::npos);
  }
}

}  // namespace
}  // namespace hf::nvidia
