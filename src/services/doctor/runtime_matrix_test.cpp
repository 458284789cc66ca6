#include "services/doctor/runtime_matrix.h"

#include <gtest/gtest.h>

namespace hf::doctor {
namespace {

using container::CgroupDriver;
using Kept = Loss::Kept;

container::Container run_by(const char* runtime, const char* version, CgroupDriver driver = CgroupDriver::cgroupfs) {
  container::Container container;
  container.runtime = container::Runtime{runtime, std::string("/usr/bin/") + runtime, version};
  container.driver = driver;
  return container;
}

std::optional<Kept> kept(const container::Container& container) {
  const std::optional<Loss> loss = how_update_loses(container);
  return loss ? std::optional(loss->kept) : std::nullopt;
}

TEST(RuntimeMatrix, KnowsWhatAnUpdateByEachRuncKeeps) {
  EXPECT_EQ(kept(run_by("runc", "1.0.0-rc95")), Kept::bundle);
  EXPECT_EQ(kept(run_by("runc", "1.0.0~rc93+ds1")), Kept::bundle);
  EXPECT_EQ(kept(run_by("runc", "1.0.0-rc95", CgroupDriver::systemd)), Kept::unit);
  EXPECT_EQ(kept(run_by("runc", "1.0.0")), std::nullopt) << "later than its candidates";
  EXPECT_EQ(kept(run_by("runc", "1.10.0")), std::nullopt) << "compared as numbers";
  EXPECT_EQ(kept(run_by("runc", "1.1.12", CgroupDriver::systemd)), Kept::unit);
  EXPECT_EQ(kept(run_by("runc", "unknown")), std::nullopt);
}

TEST(RuntimeMatrix, KnowsWhatAnUpdateByEachCrunKeeps) {
  EXPECT_EQ(kept(run_by("crun", "1.17", CgroupDriver::systemd)), std::nullopt);
  EXPECT_EQ(kept(run_by("crun", "1.18", CgroupDriver::systemd)), Kept::nothing);
  EXPECT_EQ(kept(run_by("crun", "1.18.2", CgroupDriver::systemd)), Kept::nothing);
  EXPECT_EQ(kept(run_by("crun", "1.19", CgroupDriver::systemd)), std::nullopt);
  EXPECT_EQ(kept(run_by("crun", "1.18")), std::nullopt);
}

TEST(RuntimeMatrix, KnowsEnginesThatSendTheBundlesRules) {
  container::Container by_podman = run_by("crun", "1.18");
  by_podman.engine = "podman";
  EXPECT_EQ(kept(by_podman), Kept::bundle);
  by_podman.runtime->version = "1.9";
  EXPECT_EQ(kept(by_podman), std::nullopt) << "older than 1.18, though not as text";

  container::Container by_containerd = run_by("crun", "1.14");
  by_containerd.engine = "containerd";
  EXPECT_EQ(kept(by_containerd), std::nullopt) << "only kubelet's updates bring rules";
  by_containerd.pod.emplace();
  EXPECT_EQ(kept(by_containerd), Kept::bundle);
  by_containerd.runtime->program = "/usr/bin/nvidia-container-runtime.cdi";
  EXPECT_EQ(kept(by_containerd), Kept::nothing) << "it edits the bundle after containerd has recorded it";
}

TEST(RuntimeMatrix, KnowsThatYoukiKeepsNothing) { EXPECT_EQ(kept(run_by("youki", "0.3.0")), Kept::nothing); }

TEST(RuntimeMatrix, KnowsWhichRuncNeedsLinks) {
  for (const char* version : {"1.1.3", "1.1.5+ds1", "1.1.6"}) {
    EXPECT_TRUE(leaves_out_unlinked_devices(run_by("runc", version))) << version;
  }
  for (const char* version : {"1.1.2", "1.1.7", "1.1.12", "1.10.4", ""}) {
    EXPECT_FALSE(leaves_out_unlinked_devices(run_by("runc", version))) << version;
  }
  EXPECT_FALSE(leaves_out_unlinked_devices(run_by("crun", "1.1.5")));
}

}  // namespace
}  // namespace hf::doctor
