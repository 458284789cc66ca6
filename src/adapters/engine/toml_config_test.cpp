#include <gtest/gtest.h>

#include "adapters/engine/containerd_config.h"
#include "adapters/engine/crio_config.h"
#include "adapters/engine/podman_config.h"
#include "support/setup_files.h"

namespace hf::engine {
namespace {

const Registration kOffered{"/usr/bin/holdfast-runtime", RuntimeRole::offered};
const Registration kByDefault{"/usr/bin/holdfast-runtime", RuntimeRole::by_default};
const Registration kWithAnnotations{"/usr/bin/holdfast-runtime", RuntimeRole::offered, true};

std::string added(std::string_view text, const Registration& registration) {
  const Result<Edited> edited = add_to_containerd(text, registration);
  EXPECT_TRUE(edited) << edited.error().message << "\n" << text;
  return edited ? edited->text : "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ContainerdConfig, KeepsEveryByteOfTheRestInEveryVersion) {
  for (const test::SetupFile& file : test::read_setup_files("containerd-")) {
    for (const Registration& registration : {kOffered, kByDefault, kWithAnnotations}) {
      const std::string text = added(file.text, registration);
      EXPECT_NE(text, file.text) << file.name;
      EXPECT_EQ(added(text, registration), text) << file.name << ": adding it again changes nothing";
      const Result<std::optional<Registered>> found = find_in_containerd(text);
      ASSERT_TRUE(found && *found) << file.name;
      EXPECT_EQ((*found)->program, registration.program) << file.name;
      EXPECT_EQ((*found)->role, registration.role) << file.name;
      EXPECT_EQ((*found)->passes_annotations, registration.passes_annotations) << file.name;
      const Result<std::string> removed = remove_from_containerd(text, file.text);
      ASSERT_TRUE(removed) << removed.error().message;
      EXPECT_EQ(*removed, file.text) << file.name;
      EXPECT_EQ(find_in_containerd(file.text)->has_value(), false) << file.name;
    }
  }
}

TEST(ContainerdConfig, GetsARuntimeInThePluginOfItsVersion) {
  EXPECT_TRUE(has(added(test::read_setup_file("containerd-1.4"), kOffered),
                  "\n      [plugins.cri.containerd.runtimes.holdfast]\n"
                  "        privileged_without_host_devices = false\n        runtime_type = \"io.containerd.runc.v2\"\n"
                  "\n        [plugins.cri.containerd.runtimes.holdfast.options]\n"
                  "          BinaryName = \"/usr/bin/holdfast-runtime\"\n          SystemdCgroup = true\n"));
  EXPECT_TRUE(has(added(test::read_setup_file("containerd-1.6"), kOffered),
                  "\n        [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.holdfast]\n"));
  EXPECT_TRUE(has(added(test::read_setup_file("containerd-2.1"), kOffered),
                  "\n        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.holdfast]\n"));
  EXPECT_EQ(added("", kOffered),
            "version = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.holdfast]\n"
            "  runtime_type = \"io.containerd.runc.v2\"\n\n"
            "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.holdfast.options]\n"
            "  BinaryName = \"/usr/bin/holdfast-runtime\"\n");
}

TEST(ContainerdConfig, PassesAnnotationsWhereItIsAskedTo) {
  const std::string text = added(test::read_setup_file("containerd-1.7"), kWithAnnotations);
  const std::string ours = text.substr(text.find("runtimes.holdfast]"));
  EXPECT_TRUE(has(ours, "pod_annotations = [ \"cdi.k8s.io/*\" ]\n")) << ours;
  EXPECT_TRUE(has(ours, "container_annotations = [ \"cdi.k8s.io/*\" ]\n")) << ours;
}

TEST(ContainerdConfig, CopiesTheOptionsOfRunc) {
  const std::string text = added(test::read_setup_file("containerd-1.7"), kOffered);
  const std::string ours = text.substr(text.find("runtimes.holdfast]"));
  EXPECT_TRUE(has(ours, "SystemdCgroup = true"));
  EXPECT_TRUE(has(ours, "privileged_without_host_devices = true"));
  EXPECT_TRUE(has(ours, "pod_annotations = [ \"io.example.*\", \"org.example.\\\"quoted\\\"\" ]"));
  EXPECT_FALSE(has(ours, "/usr/sbin/runc"));
  EXPECT_FALSE(has(ours.substr(0, ours.find("# [plugins")), "kata"))
      << "nothing is copied from a runtime with another shim";
}

TEST(ContainerdConfig, ChangesTheProgramAndKeepsOtherOptionsOfTheEntry) {
  std::string text = added(test::read_setup_file("containerd-1.7"), {"/old/holdfast-runtime", RuntimeRole::offered});
  text.insert(text.find("  BinaryName = \"/old"), "  Root = \"/run/mine\"\n");
  const std::string changed = added(text, kOffered);
  EXPECT_FALSE(has(changed, "/old/"));
  EXPECT_TRUE(has(changed, "Root = \"/run/mine\""));
  EXPECT_EQ(*remove_from_containerd(changed, std::nullopt), test::read_setup_file("containerd-1.7"));
}

TEST(ContainerdConfig, KeepsLaterChangesOfOthersWhenTheRuntimeIsRemoved) {
  const std::string before = test::read_setup_file("containerd-2.1");
  std::string text = added(before, kByDefault);
  EXPECT_TRUE(has(text, "default_runtime_name = \"holdfast\""));
  text.replace(text.find("'5m0s'"), 6, "'9m0s'");
  const std::string removed = *remove_from_containerd(text, before);
  EXPECT_TRUE(has(removed, "default_runtime_name = 'runc'")) << "the earlier default is restored";
  EXPECT_TRUE(has(removed, "'9m0s'"));
  EXPECT_FALSE(has(removed, "holdfast"));
}

TEST(ContainerdConfig, RestoresTheEarlierDefaultWhereTheRuntimeIsOnlyOffered) {
  for (const test::SetupFile& file : test::read_setup_files("containerd-")) {
    Registration offered = kOffered;
    offered.before = file.text;
    const std::string text = added(added(file.text, kByDefault), offered);
    EXPECT_EQ(text, added(file.text, kOffered)) << file.name;
    EXPECT_EQ((*find_in_containerd(text))->role, RuntimeRole::offered) << file.name;
  }
  EXPECT_FALSE(has(added(added("", kByDefault), kOffered), "default_runtime_name")) << "without a backup";
}

TEST(ContainerdConfig, RestoresNoDefaultWhoseRuntimeWasRemovedSince) {
  const std::string runtime =
      "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\nruntime_type = \"io.containerd.runc.v2\"\n";
  const std::string before =
      "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
      "default_runtime_name = \"nvidia\"\n" +
      runtime;
  std::string text = added(before, kByDefault);
  ASSERT_TRUE(has(text, runtime));
  text.erase(text.find(runtime), runtime.size());
  Registration offered = kOffered;
  offered.before = before;
  EXPECT_FALSE(has(added(text, offered), "default_runtime_name"));
}

TEST(ContainerdConfig, KeepsTheNewlinesOfTheFile) {
  const std::string text = "version = 2\r\n[plugins]\r\n";
  const std::string edited = added(text, kByDefault);
  for (std::size_t at = edited.find('\n'); at != std::string::npos; at = edited.find('\n', at + 1)) {
    EXPECT_EQ(edited[at - 1], '\r');
  }
  EXPECT_EQ(*remove_from_containerd(edited, text), text);
}

TEST(ContainerdConfig, NotesThatADisabledPluginKeepsItFromHavingAnEffect) {
  EXPECT_EQ(add_to_containerd(test::read_setup_file("containerd-docker"), kOffered)->notes.size(), 1U);
  EXPECT_EQ(add_to_containerd(test::read_setup_file("containerd-2.1"), kOffered)->notes.size(), 0U);
}

TEST(ContainerdConfig, ANewDropInFollowsItsMainFile) {
  const auto add = [](std::string_view text, const std::vector<std::string>& mains) {
    return add_to_containerd_drop_in(text, kOffered, mains, "2");
  };
  const std::string main = test::read_setup_file("containerd-2.1");
  const Result<Edited> edited = add("", {main});
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_TRUE(edited->text.starts_with("version = 3\n")) << edited->text;
  EXPECT_TRUE(has(edited->text, "SystemdCgroup")) << "as in the entry of runc";
  EXPECT_FALSE(has(edited->text, "runtimes.runc"));
  EXPECT_EQ(add(edited->text, {main})->text, edited->text);
  EXPECT_TRUE(is_empty_containerd_config(*remove_from_containerd(edited->text, std::nullopt)));
  EXPECT_EQ(add("", {})->text, added("", kOffered));
  EXPECT_TRUE(has(add("", {"version = 2\n"}).error().message, "the main file has version 2"));
  EXPECT_TRUE(has(add("", {"[plugins.cri]\nsandbox_image = \"a\"\n"}).error().message, "version 1"));
  EXPECT_TRUE(add("version = 2\n", {"version = 2\n"})) << "it is read already";
}

TEST(ContainerdConfig, RefusesAFileThatItCannotChangeSafely) {
  for (const char* text :
       {"version = 4\n", "version = \"2\"\n", "version = 2\nplugins = 3\n", "[a\n", "[\x02]\n", "[[\n", "[",
        "a = 1\na = 2\n", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nruntimes = {}\n"}) {
    EXPECT_FALSE(add_to_containerd(text, kOffered)) << text;
  }
  const Result<Edited> edited = add_to_containerd("version = 2\n\n[grpc\n", kOffered);
  EXPECT_TRUE(edited.error().message.starts_with("line 3, column ")) << edited.error().message;
}

TEST(CrioConfig, IsADropInWithTheMonitorSettingsOfTheDefaultRuntime) {
  const Result<Edited> edited = add_to_crio("", kByDefault, {test::read_setup_file("crio.conf"), "not [ toml"});
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited->text,
            "[crio.runtime.runtimes.holdfast]\n"
            "  allowed_annotations = [ \"io.containers.trace-syscall\" ]\n"
            "  monitor_exec_cgroup = \"container\"\n"
            "  monitor_path = \"/usr/libexec/crio/conmon\"\n"
            "  runtime_path = \"/usr/bin/holdfast-runtime\"\n"
            "  runtime_type = \"oci\"\n"
            "\n[crio.runtime]\n  default_runtime = \"holdfast\"\n");
  EXPECT_TRUE(is_empty_toml(*remove_from_crio(edited->text, std::nullopt))) << *remove_from_crio(edited->text, {});
}

TEST(CrioConfig, LosesTheDefaultWhereTheRuntimeIsOnlyOffered) {
  const std::string text = add_to_crio("", kByDefault, {})->text;
  EXPECT_EQ(add_to_crio(text, kOffered, {})->text, add_to_crio("", kOffered, {})->text);
}

TEST(CrioConfig, CanBeTheMainFileToo) {
  const std::string before = test::read_setup_file("crio.conf");
  const std::string text = add_to_crio(before, kByDefault, {})->text;
  EXPECT_EQ(add_to_crio(text, kByDefault, {})->text, text);
  EXPECT_TRUE(has(text, "default_runtime = \"holdfast\""));
  EXPECT_EQ(*remove_from_crio(text, before), before);
}

TEST(PodmanConfig, IsADropIn) {
  const Result<Edited> edited = add_to_podman("", kByDefault);
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(
      edited->text,
      "[engine.runtimes]\n  holdfast = [ \"/usr/bin/holdfast-runtime\" ]\n\n[engine]\n  runtime = \"holdfast\"\n");
  EXPECT_TRUE(is_empty_toml(*remove_from_podman(edited->text, std::nullopt)));
  EXPECT_EQ((*find_in_podman(edited->text))->program, "/usr/bin/holdfast-runtime");
}

TEST(PodmanConfig, CanBeTheMainFileToo) {
  const std::string before = test::read_setup_file("containers.conf");
  const std::string text = add_to_podman(before, kByDefault)->text;
  EXPECT_EQ(add_to_podman(text, kByDefault)->text, text);
  EXPECT_TRUE(has(text, "runtime = \"holdfast\" # as the distribution has it"));
  EXPECT_EQ(*remove_from_podman(text, before), before);
  EXPECT_TRUE(
      has(add_to_podman(text, {"/other/runtime", RuntimeRole::offered})->text, "holdfast = [ \"/other/runtime\" ]"));
}

}  // namespace
}  // namespace hf::engine
