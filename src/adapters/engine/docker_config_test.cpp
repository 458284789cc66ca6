#include "adapters/engine/docker_config.h"

#include <gtest/gtest.h>

#include "support/setup_files.h"

namespace hf::engine {
namespace {

const Registration kOffered{"/usr/bin/holdfast-runtime", RuntimeRole::offered};
const Registration kByDefault{"/usr/bin/holdfast-runtime", RuntimeRole::by_default};

std::string added(std::string_view text, const Registration& registration) {
  const Result<Edited> edited = add_to_docker(text, registration);
  EXPECT_TRUE(edited) << edited.error().message << "\n" << text;
  return edited ? edited->text : "";
}

TEST(DockerConfig, GetsARuntimeInTheLayoutOfTheFile) {
  EXPECT_EQ(added("", kOffered),
            "{\n    \"runtimes\": {\n        \"holdfast\": {\n            \"path\": \"/usr/bin/holdfast-runtime\"\n"
            "        }\n    }\n}\n");
  EXPECT_EQ(
      added(R"({"debug":true})", kByDefault),
      R"({"default-runtime":"holdfast", "runtimes":{"holdfast":{"path":"/usr/bin/holdfast-runtime"}}, "debug":true})");
  EXPECT_EQ(added("{\n\t\"runtimes\" : {\n\t\t\"a\" : {}\n\t}\n}", kOffered),
            "{\n\t\"runtimes\" : {\n\t\t\"holdfast\" : {\n\t\t\t\"path\" : \"/usr/bin/holdfast-runtime\"\n\t\t},\n"
            "\t\t\"a\" : {}\n\t}\n}");
}

TEST(DockerConfig, KeepsEveryByteOfTheRest) {
  for (const test::SetupFile& file : test::read_setup_files("docker-")) {
    for (const Registration& registration : {kOffered, kByDefault}) {
      const std::string text = added(file.text, registration);
      EXPECT_NE(text, file.text) << file.name;
      EXPECT_EQ(added(text, registration), text) << file.name << ": adding it again changes nothing";
      const Result<std::optional<Registered>> found = find_in_docker(text);
      ASSERT_TRUE(found && *found) << file.name;
      EXPECT_EQ((*found)->program, registration.program) << file.name;
      EXPECT_EQ((*found)->role, registration.role) << file.name;
      const Result<std::string> removed = remove_from_docker(text, file.text);
      ASSERT_TRUE(removed) << removed.error().message;
      const bool had_empty_runtimes = file.name == "docker-odd.json";  // the blanks in it are not restored
      EXPECT_EQ(had_empty_runtimes ? removed->size() + 3 : removed->size(), file.text.size()) << file.name;
      EXPECT_TRUE(had_empty_runtimes || *removed == file.text) << *removed;
    }
  }
}

TEST(DockerConfig, KeepsFeaturesAndTheOrderOfEverything) {
  const std::string before = test::read_setup_file("docker-features");
  const std::string after = added(before, kOffered);
  const std::size_t inserted = after.size() - before.size();
  EXPECT_EQ(after.substr(0, 4) + after.substr(4 + inserted), before) << "one block was inserted, and nothing removed";
}

TEST(DockerConfig, KeepsLaterChangesOfOthersWhenTheRuntimeIsRemoved) {
  const std::string before = test::read_setup_file("docker-nvidia");
  std::string text = added(before, kByDefault);
  text.replace(text.find("overlay2"), 8, "btrfs");
  const std::string removed = *remove_from_docker(text, before);
  EXPECT_NE(removed.find("btrfs"), std::string::npos);
  EXPECT_NE(removed.find("\"default-runtime\": \"nvidia\""), std::string::npos) << "the earlier default is restored";
  EXPECT_EQ(removed.find("holdfast"), std::string::npos);
}

TEST(DockerConfig, KeepsADefaultThatWasChangedLater) {
  std::string text = added("{\n  \"debug\": true\n}\n", kByDefault);
  text.replace(text.find("\"holdfast\""), 10, "\"crun\"");
  EXPECT_EQ(*remove_from_docker(text, std::nullopt), "{\n  \"default-runtime\": \"crun\",\n  \"debug\": true\n}\n");
}

TEST(DockerConfig, RestoresTheEarlierDefaultWhereTheRuntimeIsOnlyOffered) {
  for (const test::SetupFile& file : test::read_setup_files("docker-")) {
    Registration offered = kOffered;
    offered.before = file.text;
    EXPECT_EQ(added(added(file.text, kByDefault), offered), added(file.text, kOffered)) << file.name;
  }
  EXPECT_EQ(find_in_docker(added(R"({"default-runtime": "holdfast"})", kOffered)).value()->role, RuntimeRole::offered);
}

TEST(DockerConfig, RestoresNoDefaultWhoseRuntimeWasRemovedSince) {
  const std::string before = R"({"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "/n"}}})";
  std::string text = added(before, kByDefault);
  const std::string nvidia = R"(, "nvidia": {"path": "/n"})";
  ASSERT_NE(text.find(nvidia), std::string::npos) << text;
  text.erase(text.find(nvidia), nvidia.size());
  Registration offered = kOffered;
  offered.before = before;
  EXPECT_EQ(added(text, offered).find("default-runtime"), std::string::npos);
  EXPECT_EQ(remove_from_docker(text, before)->find("default-runtime"), std::string::npos);
}

TEST(DockerConfig, ChangesThePathOfAnExistingRuntime) {
  const std::string text = added(R"({"runtimes": {"holdfast": {"runtimeArgs": ["-v"], "path": "/old"}}})", kOffered);
  EXPECT_EQ(text, R"({"runtimes": {"holdfast": {"runtimeArgs": ["-v"], "path": "/usr/bin/holdfast-runtime"}}})");
  EXPECT_EQ(added(R"({"runtimes": {"holdfast": null}})", kOffered),
            R"({"runtimes": {"holdfast": {"path": "/usr/bin/holdfast-runtime"}}})");
}

TEST(DockerConfig, NamesTheLineThatIsNoJson) {
  const Result<Edited> edited = add_to_docker("{\n  \"debug\": true,\n  // no\n}\n", kOffered);
  ASSERT_FALSE(edited);
  EXPECT_TRUE(edited.error().message.starts_with("line 3, column ")) << edited.error().message;
}

TEST(DockerConfig, RefusesAFileThatItCannotChangeSafely) {
  for (const char* text : {"[]", "{", "{\"runtimes\": []}", "{\"runtimes\": {}, \"runtimes\": {}}", "nonsense", "{}}",
                           "{\"default-runtime\": \"a\", \"default-runtime\": \"b\"}"}) {
    EXPECT_FALSE(add_to_docker(text, kByDefault)) << text;
    EXPECT_FALSE(remove_from_docker(text, std::nullopt)) << text;
  }
  EXPECT_FALSE(add_to_docker(std::string(100'000, '['), kOffered));
  for (const char* path : {"", "holdfast-runtime", "/a b", "/a\"b", "/a\\b", "/a\nb"}) {
    EXPECT_FALSE(add_to_docker("{}", {path, RuntimeRole::offered})) << path;
  }
}

TEST(DockerConfig, HasNoRegistrationBeforeItIsAdded) {
  for (const test::SetupFile& file : test::read_setup_files("docker-")) {
    EXPECT_EQ(find_in_docker(file.text)->has_value(), false) << file.name;
    EXPECT_EQ(*remove_from_docker(file.text, std::nullopt), file.text);
  }
}

}  // namespace
}  // namespace hf::engine
