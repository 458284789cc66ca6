#include "core/container/container.h"

#include <gtest/gtest.h>

namespace hf::container {
namespace {

const std::string kId(64, 'a');

Container named(const std::string& id, const std::string& name = {}) {
  Container it;
  it.id.value = id;
  it.name = name;
  return it;
}

TEST(MatchesOf, AnExactIdOfARootContainerTakesPrecedence) {
  std::vector<Container> all = {named(kId), named(std::string(64, 'b'), kId), named(kId), named(kId)};
  all[2].is_owned_by_user = true;
  all[3].inside = ContainerId{"outer"};
  EXPECT_EQ(matches_of(all, kId), std::vector<const Container*>{&all[0]});
}

TEST(MatchesOf, UserOwnedAndNestedContainersMakeNoNameAmbiguous) {
  std::vector<Container> all = {named(kId, "web"), named("x", "web"), named("y", "web")};
  all[1].is_owned_by_user = true;
  all[2].inside = ContainerId{kId};
  EXPECT_EQ(matches_of(all, "web"), std::vector<const Container*>{&all[0]});
  EXPECT_EQ(matches_of(all, "x"), std::vector<const Container*>{&all[1]}) << "they have names of their own";
}

TEST(MatchesOf, ANameDoesNotHideTheIdPrefixOfAnotherContainer) {
  const std::vector<Container> all = {named(kId), named("z", "aaaa")};
  EXPECT_EQ(matches_of(all, "aaaa").size(), 2U);
}

TEST(ShownNameSpace, IsNotThatOfDockersOwn) {
  EXPECT_EQ(shown_name_space("docker", "moby"), "docker");
  EXPECT_EQ(shown_name_space("docker", "ml"), "ml");  // of a pod, below cri-dockerd
  EXPECT_EQ(shown_name_space("containerd", "moby"), "moby");
  EXPECT_EQ(shown_name_space("podman", ""), "");
}

TEST(OwnCgroupIn, IsTheContainersCgroupForPathsAtOrBelowIt) {
  Container it = named(kId);
  it.cgroup = "/docker/" + kId;
  EXPECT_EQ(own_cgroup_in(it, it.cgroup), it.cgroup);
  EXPECT_EQ(own_cgroup_in(it, it.cgroup + "/init"), it.cgroup);
  EXPECT_EQ(own_cgroup_in(it, "/system.slice/docker-" + kId + ".scope/x"), "/system.slice/docker-" + kId + ".scope")
      << "another hierarchy may have another name for it";
  for (const std::string& path : {std::string("/"), std::string("/docker"), std::string("/system.slice/ssh.service"),
                                  it.cgroup + "x", "/docker/" + std::string(64, 'b')}) {
    EXPECT_FALSE(own_cgroup_in(it, path)) << path;
  }
  it.shares_cgroup = true;
  EXPECT_FALSE(own_cgroup_in(it, it.cgroup));
  it.shares_cgroup = false;
  it.cgroup = "/";
  EXPECT_FALSE(own_cgroup_in(it, "/system.slice/ssh.service"));
  it.cgroup.clear();
  EXPECT_FALSE(own_cgroup_in(it, "/system.slice/ssh.service"));
}

}  // namespace
}  // namespace hf::container
