#include "services/plugin/socket_name.h"

#include <gtest/gtest.h>

namespace hf::plugin {
namespace {

TEST(SocketName, InstancesOfAResourceKnowEachOther) {
  const std::string prefix = socket_prefix("nvidia.com/a100");
  EXPECT_EQ(prefix, "holdfast-nvidia.com_a100-");
  EXPECT_TRUE(is_socket_of(prefix, prefix + random_suffix()));
  EXPECT_TRUE(is_socket_of(prefix, prefix + "0123abcd.sock"));
  EXPECT_NE(random_suffix(), random_suffix());
}

TEST(SocketName, OfAResourceThatBeginsWithAnotherIsNotTheOthers) {
  const std::string prefix = socket_prefix("nvidia.com/a100");
  for (const char* longer : {"nvidia.com/a100-80gb", "nvidia.com/a100-01234567", "nvidia.com/a1000"}) {
    EXPECT_FALSE(is_socket_of(prefix, socket_prefix(longer) + random_suffix())) << longer;
  }
  for (const char* end : {"", "0123abcd", "0123abc.sock", "0123abcg.sock", "0123abcd.sockx"}) {
    EXPECT_FALSE(is_socket_of(prefix, prefix + end)) << end;
  }
}

TEST(SocketName, LongNamesDifferAfterTheirBeginning) {
  const std::string begin = "example.com/" + std::string(40, 'x');
  EXPECT_NE(socket_prefix(begin + "a"), socket_prefix(begin + "b"));
  EXPECT_EQ(socket_prefix(begin + "a"), socket_prefix(begin + "a"));
  EXPECT_LE((socket_prefix(begin + "a") + random_suffix()).size(), 64U) << "sun_path has 108 bytes, with the directory";
}

}  // namespace
}  // namespace hf::plugin
