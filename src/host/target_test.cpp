#include "host/target.h"

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::host {
namespace {

DiscoveredContainer of_pod(const std::string& uid, const std::string& pod, const std::string& name) {
  DiscoveredContainer discovered;
  discovered.container.id.value = uid + "-" + name;
  discovered.container.pod = container::Pod{.uid = uid, .name = pod, .name_space = "ml", .container = name};
  return discovered;
}

class Targets : public testing::Test {
 protected:
  std::string found(const std::string& target, PodNames pods) {
    const auto matches = find_discovered(host_, census_, {target}, pods);
    std::string ids;
    for (const DiscoveredContainer* match : matches.value_or(std::vector<const DiscoveredContainer*>())) {
      ids += match->container.id.value + " ";
    }
    return matches ? ids : matches.error().message;
  }

  Census census_ = {{of_pod("u1", "train", "main"), of_pod("u1", "train", "sidecar")}, {}};

 private:
  test::FakeHost fake_{test::Files{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}}};
  kernel::Host host_ = fake_.open();
};

TEST_F(Targets, TheNameOfAPodIsAllItsContainersWhereThatIsMeant) {
  for (const char* name : {"train", "ml/train", "container:ml/train"}) {
    EXPECT_EQ(found(name, PodNames::all_containers), "u1-main u1-sidecar ") << name;
    EXPECT_NE(found(name, PodNames::ambiguous).find("may be any of: train/main"), std::string::npos) << name;
  }
  EXPECT_EQ(found("ml/train/main", PodNames::all_containers), "u1-main ");
}

TEST_F(Targets, TwoPodsWithOneNameAreAmbiguous) {
  census_.discovered_containers.push_back(of_pod("u2", "train", "main"));
  EXPECT_NE(found("train", PodNames::all_containers).find("may be any of"), std::string::npos);
  census_.discovered_containers.back() = of_pod("", "train", "main");  // by the labels of its image
  EXPECT_NE(found("train", PodNames::all_containers).find("may be any of"), std::string::npos);
}

TEST_F(Targets, TwoContainersThatSomethingElseMatchesAreAmbiguous) {
  census_.discovered_containers = {of_pod("u1", "train", "main"), of_pod("u1", "train", "main")};
  EXPECT_NE(found("train/main", PodNames::all_containers).find("may be any of"), std::string::npos);
  EXPECT_NE(found("u1-", PodNames::all_containers).find("may be any of"), std::string::npos);
}

TEST_F(Targets, ANameThatNoContainerHasGetsASuggestionAndTheNamesThereAre) {
  EXPECT_EQ(found("train/mian", PodNames::ambiguous),
            "no container 'train/mian'; did you mean train/main? running: train/main, train/sidecar");
  EXPECT_EQ(found("web", PodNames::ambiguous), "no container 'web'; running: train/main, train/sidecar");
  census_.discovered_containers.clear();
  EXPECT_EQ(found("web", PodNames::ambiguous), "no container 'web'; none runs here");
}

}  // namespace
}  // namespace hf::host
