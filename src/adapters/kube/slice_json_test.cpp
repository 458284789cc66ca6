#include "adapters/kube/slice_json.h"

#include <gtest/gtest.h>

namespace hf::kube {
namespace {

using resource::FoundSlice;
using resource::Pool;
using resource::PublishedDevice;
using resource::SemanticVersion;
using resource::SliceAction;
using resource::SliceStep;

const Pool kPool{"gpu.holdfast.dev", "node1", "uid-1"};

SliceStep step(SliceAction action = SliceAction::create) {
  PublishedDevice device{"gpu-0",
                         {{"uuid", "GPU-0"},
                          {"numaNode", std::int64_t(1)},
                          {"shared", false},
                          {"driverVersion", SemanticVersion{"550.54.15"}}},
                         {{"memory", std::uint64_t(80) << 30U}}};
  return {action, {"node1-gpu.holdfast.dev-0", 3, 1, {device}}, "17"};
}

TEST(SliceJson, IsWhatTheApiServerTakes) {
  EXPECT_EQ(
      render_slice(kPool, step()),
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"node1-gpu.holdfast.dev-0",)"
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"node1","uid":"uid-1","controller":true}]},)"
      R"("spec":{"driver":"gpu.holdfast.dev","nodeName":"node1","pool":{"name":"node1","generation":3,)"
      R"("resourceSliceCount":1},"devices":[{"name":"gpu-0","attributes":{"driverVersion":{"version":"550.54.15"},)"
      R"("numaNode":{"int":1},"shared":{"bool":false},"uuid":{"string":"GPU-0"}},)"
      R"("capacity":{"memory":{"value":"80Gi"}}}]}})");
  EXPECT_NE(render_slice(kPool, step(SliceAction::replace)).find(R"("resourceVersion":"17")"), std::string::npos);
  EXPECT_EQ(render_slice({kPool.driver, kPool.node, ""}, step()).find("ownerReferences"), std::string::npos);
}

TEST(SliceJson, ThereAndBack) {
  const std::string text = R"({"items":[)" + render_slice(kPool, step(SliceAction::replace)) + "]}";
  const Result<std::vector<FoundSlice>> found = parse_slices(kPool, text);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().slice, step().slice);
  EXPECT_EQ(found->front().pool, "node1");
  EXPECT_EQ(found->front().owner_uid, "uid-1");
  EXPECT_EQ(found->front().resource_version, "17");
  EXPECT_TRUE(found->front().is_readable);
}

TEST(SliceJson, WhatIsStrangeIsUnreadableNotFatal) {
  const Result<std::vector<FoundSlice>> found = parse_slices(
      kPool, R"({"items":[{"metadata":{"name":"a"},"spec":{"driver":"gpu.holdfast.dev","nodeName":"node1",)"
             R"("devices":[{"name":"x","attributes":{"a":{"list":[]}}}]}},)"
             R"({"metadata":{"name":"b"},"spec":{"driver":"gpu.holdfast.dev","nodeName":"node1",)"
             R"("devices":[{"name":"x","capacity":{"memory":{"value":"1.5Gi"}}}]}},3]})");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_FALSE((*found)[0].is_readable);
  EXPECT_FALSE((*found)[1].is_readable);
  for (const char* text : {"", "[]", "{}", "{\"items\":", "null"}) {
    EXPECT_FALSE(parse_slices(kPool, text)) << text;
  }
  EXPECT_TRUE(parse_slices(kPool, R"({"items":null})").value().empty()) << "how Go writes an empty list";
}

// A proxy may ignore the selector of the request. What others publish must not be removed.
TEST(SliceJson, SlicesOfOthersAreNotFound) {
  for (const Pool& other : {Pool{"gpu.nvidia.com", "node1", ""}, Pool{"gpu.holdfast.dev", "node2", ""}}) {
    const std::string text = R"({"items":[)" + render_slice(other, step(SliceAction::replace)) + "]}";
    EXPECT_TRUE(parse_slices(kPool, text).value().empty());
    EXPECT_EQ(parse_slices(other, text).value().size(), 1U);
  }
}

TEST(SliceJson, Paths) {
  EXPECT_EQ(slices_path(kPool),
            "/apis/resource.k8s.io/v1/resourceslices?limit=500&fieldSelector="
            "spec.driver%3Dgpu.holdfast.dev%2Cspec.nodeName%3Dnode1");
  EXPECT_EQ(slice_path(""), "/apis/resource.k8s.io/v1/resourceslices");
  EXPECT_EQ(slice_path("x"), "/apis/resource.k8s.io/v1/resourceslices/x");
  EXPECT_EQ(parse_uid(R"({"metadata":{"uid":"7"}})").value(), "7");
  EXPECT_FALSE(parse_uid(R"({"metadata":{}})"));
}

TEST(Refusal, IsTheServersOwnMessageInOneLine) {
  EXPECT_EQ(refusal_in(403, R"({"kind":"Status","message":"nodes \"x\" is\nforbidden"})"),
            "the API server answers 403: nodes \"x\" is?forbidden");
  EXPECT_EQ(refusal_in(502, "<html>"), "the API server answers 502");
}

}  // namespace
}  // namespace hf::kube
