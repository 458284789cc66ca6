#include "adapters/engine/monitor.h"

#include <gtest/gtest.h>

namespace hf::engine {
namespace {

using Arguments = std::vector<std::string>;

TEST(Monitor, OfContainerdIsItsShim) {
  const std::optional<Monitor> monitor = parse_monitor({"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id",
                                                        "d587aa6d", "-address", "/run/containerd.sock"});
  ASSERT_TRUE(monitor);
  EXPECT_EQ(monitor->kind, Monitor::Kind::shim);
  EXPECT_EQ(monitor->name_space, "moby");
  EXPECT_EQ(monitor->id, "d587aa6d");
  EXPECT_FALSE(monitor->systemd_cgroup);
}

TEST(Monitor, OfPodmanIsConmon) {
  const std::optional<Monitor> monitor =
      parse_monitor({"/usr/bin/conmon",
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
  ASSERT_TRUE(monitor);
  EXPECT_EQ(monitor->kind, Monitor::Kind::conmon);
  EXPECT_EQ(monitor->id, "36f4d210");
  EXPECT_EQ(monitor->name, "web");
  EXPECT_EQ(monitor->runtime, "/usr/bin/crun");
  EXPECT_EQ(monitor->bundle, "/var/lib/containers/storage/overlay-containers/36f4d210/userdata");
  EXPECT_TRUE(monitor->systemd_cgroup);
}

TEST(Monitor, MayLackItsArguments) {
  for (const Arguments& arguments :
       {Arguments{"containerd-shim-runc-v2"}, Arguments{"containerd-shim-runc-v2", "-id"}, Arguments{"conmon", "-c"},
        Arguments{"conmon", "--", ""}, Arguments{"conmon", "-cid", "x"}}) {
    const std::optional<Monitor> monitor = parse_monitor(arguments);
    ASSERT_TRUE(monitor) << arguments[0];
    EXPECT_EQ(monitor->id, "") << arguments[0];
  }
  EXPECT_EQ(parse_monitor({"containerd-shim", "-id=web", "-namespace=k8s.io"})->id, "web");
}

TEST(Monitor, IsNotFoundInOtherCommandLines) {
  for (const Arguments& arguments :
       {Arguments{}, Arguments{""}, Arguments{"/"}, Arguments{"/sbin/init"}, Arguments{"containerd"},
        Arguments{"conmonrs"}, Arguments{"/usr/bin/conmon/"}, Arguments{"sh", "-c", "conmon"}}) {
    EXPECT_FALSE(parse_monitor(arguments));
  }
}

TEST(ShimOptions, NameTheRuntime) {
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

TEST(DockerRecord, HasNameImageAndLabels) {
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

TEST(DataRoot, IsReadFromTheCommandLineOrTheConfig) {
  EXPECT_EQ(data_root_in({"dockerd", "--data-root", "/a"}, R"({"data-root":"/b"})"), "/a");
  EXPECT_EQ(data_root_in({"dockerd", "--data-root=/a"}, ""), "/a");
  EXPECT_EQ(data_root_in({"dockerd", "-g", "/a"}, ""), "/a");
  EXPECT_EQ(data_root_in({"dockerd", "--data-rootless", "/a"}, R"({"data-root":"/b"})"), "/b");
  for (const char* json : {"", "{", "[]", "null", R"({"data-root":7})", R"({"data-root":""})"}) {
    EXPECT_EQ(data_root_in({"dockerd"}, json), "/var/lib/docker") << json;
  }
  EXPECT_EQ(data_root_in({}, ""), "/var/lib/docker");
}

TEST(RuntimeVersion, IsThatOfTheLowLevelRuntime) {
  struct Case {
    const char* text;
    const char* name;
    const char* version;
  };
  for (const Case& entry : {Case{"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1\nspec: 1.0.2-dev\n", "runc", "1.1.5+ds1"},
                            Case{"crun version 1.8.1\ncommit: f8a0\n", "crun", "1.8.1"},
                            Case{"NVIDIA Container Runtime version 1.20.0\nspec: 1.2.1\n\nrunc version 1.0.0~rc93\n",
                                 "runc", "1.0.0~rc93"}}) {
    const std::optional<ParsedVersion> parsed = parse_version(entry.text);
    ASSERT_TRUE(parsed) << entry.text;
    EXPECT_EQ(parsed->name, entry.name);
    EXPECT_EQ(parsed->version, entry.version);
  }
  for (const char* text : {"", "runc", "runc version", "version runc 1", "gcc version 12.2.0"}) {
    EXPECT_FALSE(parse_version(text)) << text;
  }
}

}  // namespace
}  // namespace hf::engine
