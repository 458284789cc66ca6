#include "adapters/config/reload.h"

#include <gtest/gtest.h>

namespace hf::config {
namespace {

using Keys = std::vector<std::string>;

TEST(Reload, NamesWhatCountsOnlyAfterARestart) {
  Config read;
  EXPECT_EQ(waits_for_restart_of_guard({}, read), Keys());
  EXPECT_EQ(waits_for_restart_of_plugin({}, read), Keys());
  read.policy.mode = container::Mode::observe;
  EXPECT_EQ(waits_for_restart_of_guard({}, read), Keys());
  read.web.listen = "";
  read.journal.size = 1;
  read.kube.serves_device_plugin = false;
  read.kube.ignored_xids = {13};
  EXPECT_EQ(waits_for_restart_of_guard({}, read), (Keys{"web", "journal"}));
  EXPECT_EQ(waits_for_restart_of_plugin({}, read), (Keys{"kube.device_plugin", "kube.xids"}));
}

}  // namespace
}  // namespace hf::config
