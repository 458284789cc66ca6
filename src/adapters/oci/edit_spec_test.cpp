#include "adapters/oci/edit_spec.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/oci/spec.h"

namespace hf::oci {
namespace {

using container::ContainerEdits;
using container::NodeEdit;
using device::Access;
using Json = nlohmann::ordered_json;

NodeEdit gpu(const std::string& path, std::uint32_t major, std::uint32_t minor) {
  return {.path = path,
          .device = device::Device{device::Kind::character, major, minor},
          .access = Access::read | Access::write};
}

ContainerEdits everything() {
  return {
      .environment = {"NVIDIA_VISIBLE_DEVICES=void"},
      .nodes = {gpu("/dev/nvidia0", 195, 0), gpu("/dev/nvidia-uvm", 511, 0)},
      .mounts = {{"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", "", {"ro", "rbind"}}},
      .hooks = {{container::HookStage::create_container, "/usr/bin/holdfast-runtime", {"holdfast-runtime", "hook"}}},
      .gids = {44}};
}

std::string edited(std::string_view text, const ContainerEdits& edits) {
  const Result<EditedSpec> result = edit_spec(text, {edits, {}});
  EXPECT_TRUE(result) << result.error().message;
  return result ? result->text : std::string();
}

std::string error_of(std::string_view text, const ContainerEdits& edits) {
  const Result<EditedSpec> result = edit_spec(text, {edits, {}});
  return result ? "" : result.error().message;
}

constexpr const char* kSpec = R"({
  "ociVersion": "1.0.2", "future": {"x": 1.50, "big": 123456789012345678901234567890, "e": 1e5},
  "process": {"env": ["A=1", "NVIDIA_VISIBLE_DEVICES=all"], "user": {"uid": 0, "gid": 0}},
  "mounts": [ ],
  "linux": {
    "resources": {"devices": [{"allow": false, "access": "rwm"}]},
    "devices": null
  }
}
)";

TEST(EditSpec, AddsWhatIsMissingAndKeepsEveryOtherCharacter) {
  const std::string text = edited(kSpec, everything());
  for (const char* kept : {R"("future": {"x": 1.50, "big": 123456789012345678901234567890, "e": 1e5})", "\"A=1\", ",
                           R"({"allow": false, "access": "rwm"})", "\"mounts\": [ "}) {
    EXPECT_NE(text.find(kept), std::string::npos) << kept << " in " << text;
  }
  const Result<Spec> spec = parse_spec(text);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(environment_of(*spec, "NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(environment_of(*spec, "A"), "1");
  ASSERT_EQ(spec->nodes.size(), 2U);
  EXPECT_EQ(spec->nodes[1].device.major, 511U);
  EXPECT_EQ(spec->mounts.size(), 1U);
  EXPECT_EQ(spec->hooks.size(), 1U);
  const Json json = Json::parse(text);
  EXPECT_EQ(json["process"]["user"]["additionalGids"], Json({44}));
  EXPECT_EQ(json["linux"]["resources"]["devices"].size(), 3U);
}

TEST(EditSpec, ChangesNothingTheSecondTime) {
  const std::string once = edited(kSpec, everything());
  EXPECT_EQ(edited(once, everything()), once);
}

TEST(EditSpec, KeepsTheTextWithoutEdits) { EXPECT_EQ(edited(kSpec, {}), kSpec); }

TEST(EditSpec, CreatesObjectsAndListsThatAreMissing) {
  const Result<Spec> spec = parse_spec(edited("{}", everything()));
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->nodes.size(), 2U);
  EXPECT_EQ(spec->rules.size(), 2U);
  EXPECT_EQ(spec->mounts.size(), 1U);
}

TEST(EditSpec, CorrectsStaleNumbersAndTheirRule) {
  const std::string text = R"({"linux":{"devices":[{"path":"/dev/nvidia-uvm","major":510,"minor":0,"type":"c","x":1}],)"
                           R"("resources":{"devices":[{"allow":false,"access":"rwm"},)"
                           R"({"allow":true,"type":"c","major":510,"minor":0,"access":"rw"}]}}})";
  const Result<EditedSpec> result = edit_spec(text, {{.nodes = {gpu("/dev/nvidia-uvm", 511, 0)}}, {}});
  ASSERT_TRUE(result);
  std::string expected = text;
  for (std::size_t at = 0; (at = expected.find("510")) != std::string::npos;) {
    expected.replace(at, 3, "511");
  }
  EXPECT_EQ(result->text, expected);
  ASSERT_EQ(result->corrected.size(), 1U);
  EXPECT_NE(result->corrected[0].find("/dev/nvidia-uvm"), std::string::npos);
}

TEST(EditSpec, DoesNotAddARuleForADeviceThatIsAllowed) {
  const std::string text = R"({"linux":{"resources":{"devices":[{"allow":true,"access":"rwm"}]},"devices":[]}})";
  const std::string result = edited(text, {.nodes = {gpu("/dev/nvidia0", 195, 0)}});
  EXPECT_EQ(Json::parse(result)["linux"]["resources"], Json::parse(text)["linux"]["resources"]);
  EXPECT_EQ(Json::parse(result)["linux"]["devices"].size(), 1U);
}

TEST(EditSpec, AddsNoHookThatIsThereWithoutArguments) {
  const std::string text = R"({"hooks":{"poststop":[{"path":"/bin/true"}]}})";
  EXPECT_EQ(edited(text, {.hooks = {{container::HookStage::poststop, "/bin/true"}}}), text);
}

TEST(EditSpec, RemovesHooksThatDoTheSame) {
  const std::string hook = R"({"path":"/usr/bin/nvidia-container-runtime-hook","args":["x"]})";
  const std::string other = R"({"path":"/bin/other"})";
  for (const auto& [before, after] :
       {std::pair(hook, std::string()), std::pair(hook + "," + other, other), std::pair(other + " , " + hook, other),
        std::pair(hook + ", " + other + "," + hook, other), std::pair(hook + "," + hook, std::string())}) {
    const Result<EditedSpec> result =
        edit_spec("{\"hooks\":{\"prestart\":[" + before + "]}}", {{}, {"/usr/bin/nvidia-container-runtime-hook"}});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->text, "{\"hooks\":{\"prestart\":[" + after + "]}}");
  }
}

TEST(EditSpec, RefusesATextThatItCannotChangeSafely) {
  EXPECT_NE(error_of("", everything()), "");
  EXPECT_NE(error_of(R"({"linux":{"devices":[)", everything()), "");
  EXPECT_NE(error_of(R"({"linux":{"devices":[],"devices":[]}})", everything()).find("devices"), std::string::npos);
  EXPECT_NE(error_of(R"({"mounts":{}, "mounts":[]})", everything()), "");
  EXPECT_NE(error_of(R"({"linux":7})", everything()).find("linux"), std::string::npos);
  EXPECT_NE(error_of("{}", {.nodes = {{.path = "/dev/x", .device = std::nullopt}}}).find("/dev/x"), std::string::npos);
}

TEST(EditSpec, ReadsADeeplyNestedTextWithoutRecursion) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string text = R"({"x":)" + deep + R"(,"linux":{}})";
  const std::string result = edited(text, {.nodes = {gpu("/dev/nvidia0", 195, 0)}});
  EXPECT_NE(result.find(deep), std::string::npos);
}

TEST(EditSpec, FindsKeysThatAreWrittenWithEscapes) {
  const std::string result = edited(R"({"l\u0069nux":{"devices":[]}})", {.nodes = {gpu("/dev/nvidia0", 195, 0)}});
  EXPECT_EQ(Json::parse(result).size(), 1U) << result;
}

}  // namespace
}  // namespace hf::oci
