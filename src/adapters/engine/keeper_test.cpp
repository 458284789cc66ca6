#include "adapters/engine/keeper.h"

#include <gtest/gtest.h>

namespace hf::engine {
namespace {

using Words = std::vector<std::string>;

TEST(Keeper, OfContainerdIsItsShim) {
  const std::optional<Keeper> keeper = parse_keeper({"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id",
                                                     "d587aa6d", "-address", "/run/containerd.sock"});
  ASSERT_TRUE(keeper);
  EXPECT_EQ(keeper->kind, Keeper::Kind::shim);
  EXPECT_EQ(keeper->name_space, "moby");
  EXPECT_EQ(keeper->id, "d587aa6d");
  EXPECT_FALSE(keeper->systemd_cgroup);
}

TEST(Keeper, OfPodmanIsConmon) {
  const std::optional<Keeper> keeper = parse_keeper({"/usr/bin/conmon",
                                                     "--api-version",
                                                     "1",
                                                     "-c",
                                                     "36f4d210",
                                                     "-u",
                                                     "36f4d210",
                                                     "-r",
                                                     "/usr/bin/crun",
                                                     "-b",
                                                     "/var/lib/containers/storage/overlay-containers/36f4d210/userdata",
                                                     "-p",
                                                     "/run/pidfile",
                                                     "-n",
                                                     "web",
                                                     "--exit-dir",
                                                     "/run/exits",
                                                     "--full-attach",
                                                     "-s",
                                                     "-l",
                                                     "k8s-file:/ctr.log",
                                                     "--log-level",
                                                     "warning",
                                                     "--runtime-arg",
                                                     "--log-format=json",
                                                     "--exit-command",
                                                     "/usr/bin/podman",
                                                     "--exit-command-arg",
                                                     "--root"});
  ASSERT_TRUE(keeper);
  EXPECT_EQ(keeper->kind, Keeper::Kind::conmon);
  EXPECT_EQ(keeper->id, "36f4d210");
  EXPECT_EQ(keeper->name, "web");
  EXPECT_EQ(keeper->runtime, "/usr/bin/crun");
  EXPECT_EQ(keeper->bundle, "/var/lib/containers/storage/overlay-containers/36f4d210/userdata");
  EXPECT_TRUE(keeper->systemd_cgroup);
}

TEST(Keeper, MayLackEverything) {
  for (const Words& words : {Words{"containerd-shim-runc-v2"}, Words{"containerd-shim-runc-v2", "-id"},
                             Words{"conmon", "-c"}, Words{"conmon", "--", ""}, Words{"conmon", "-cid", "x"}}) {
    const std::optional<Keeper> keeper = parse_keeper(words);
    ASSERT_TRUE(keeper) << words[0];
    EXPECT_EQ(keeper->id, "") << words[0];
  }
  EXPECT_EQ(parse_keeper({"containerd-shim", "-id=web", "-namespace=k8s.io"})->id, "web");
}

TEST(Keeper, IsNoOtherProcess) {
  for (const Words& words : {Words{}, Words{""}, Words{"/"}, Words{"/sbin/init"}, Words{"containerd"},
                             Words{"conmonrs"}, Words{"/usr/bin/conmon/"}, Words{"sh", "-c", "conmon"}}) {
    EXPECT_FALSE(parse_keeper(words));
  }
}

TEST(ShimOptions, TellTheRuntime) {
  const Result<ShimOptions> options =
      parse_shim_options(R"({"binary_name":"/usr/bin/crun","root":"/run/docker/runtime-runc","systemd_cgroup":true})");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->binary, "/usr/bin/crun");
  EXPECT_EQ(options->root, "/run/docker/runtime-runc");
  EXPECT_EQ(options->systemd_cgroup, true);
  EXPECT_EQ(parse_shim_options(R"({"binary_name":7,"systemd_cgroup":"x"})")->systemd_cgroup, std::nullopt);
  for (const char* json : {"", "[]", "null", "{", "\xff"}) {
    EXPECT_FALSE(parse_shim_options(json)) << json;
  }
}

TEST(DockerRecord, TellsNameImageAndLabels) {
  const Result<DockerRecord> record =
      parse_docker_record(R"({"Name":"/web","Image":"sha256:1","Config":{"Image":"nginx","Labels":{"a":"b","c":7}}})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->name, "web");
  EXPECT_EQ(record->image, "nginx");
  EXPECT_EQ(record->labels, (std::map<std::string, std::string>{{"a", "b"}, {"c", ""}}));
  for (const char* json : {"{}", R"({"Name":7,"Config":[]})", R"({"Config":{"Labels":[],"Image":null}})"}) {
    ASSERT_TRUE(parse_docker_record(json)) << json;
    EXPECT_EQ(parse_docker_record(json)->name, "") << json;
  }
  EXPECT_FALSE(parse_docker_record("[]"));
}

TEST(DataRoot, IsTheOneDockerWasTold) {
  EXPECT_EQ(data_root_in({"dockerd", "--data-root", "/a"}, R"({"data-root":"/b"})"), "/a");
  EXPECT_EQ(data_root_in({"dockerd", "--data-root=/a"}, ""), "/a");
  EXPECT_EQ(data_root_in({"dockerd", "-g", "/a"}, ""), "/a");
  EXPECT_EQ(data_root_in({"dockerd", "--data-rootless", "/a"}, R"({"data-root":"/b"})"), "/b");
  for (const char* json : {"", "{", "[]", "null", R"({"data-root":7})", R"({"data-root":""})"}) {
    EXPECT_EQ(data_root_in({"dockerd"}, json), "/var/lib/docker") << json;
  }
  EXPECT_EQ(data_root_in({}, ""), "/var/lib/docker");
}

TEST(RuntimeVersion, IsOfTheRuntimeThatRunsContainers) {
  struct Case {
    const char* text;
    const char* name;
    const char* version;
  };
  for (const Case& entry : {Case{"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1\nspec: 1.0.2-dev\n", "runc", "1.1.5+ds1"},
                            Case{"crun version 1.8.1\ncommit: f8a0\n", "crun", "1.8.1"},
                            Case{"NVIDIA Container Runtime version 1.20.0\nspec: 1.2.1\n\nrunc version 1.0.0~rc93\n",
                                 "runc", "1.0.0~rc93"}}) {
    const std::optional<VersionWords> words = parse_version(entry.text);
    ASSERT_TRUE(words) << entry.text;
    EXPECT_EQ(words->name, entry.name);
    EXPECT_EQ(words->version, entry.version);
  }
  for (const char* text : {"", "runc", "runc version", "version runc 1", "gcc version 12.2.0"}) {
    EXPECT_FALSE(parse_version(text)) << text;
  }
}

}  // namespace
}  // namespace hf::engine
