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
  EXPECT_EQ(waits_for_restart_of_plugin({}, read), Keys()) << "only the socket";
  read.web.socket = "/run/other.sock";
  read.journal.size = 1;
  read.kube.serves_device_plugin = false;
  read.kube.ignored_xids = {13};
  read.kube.root_dir = "/var/lib/k0s/kubelet";
  EXPECT_EQ(waits_for_restart_of_guard({}, read), (Keys{"web", "journal", "kube.root_dir"}));
  EXPECT_EQ(waits_for_restart_of_plugin({}, read),
            (Keys{"kube.root_dir", "kube.device_plugin", "web.socket", "kube.xids"}));
}

}  // namespace
}  // namespace hf::config
