#include "adapters/nri/session.h"

#include <gtest/gtest.h>

#include "adapters/nri/nri.pb.h"

namespace hf::nri {
namespace {

std::string call(const std::string& method, const std::string& payload, std::uint32_t stream = 1) {
  wire::Request request;
  request.set_service("nri.pkg.api.v1alpha1.Plugin");
  request.set_method(method);
  request.set_payload(payload);
  return frame(Connection::plugin, {stream, MessageType::request, request.SerializeAsString()});
}

wire::Response response_in(const std::string& bytes) {
  FrameReader reader;
  const std::vector<Received> received = *reader.feed(bytes);
  wire::Response response;
  if (received.size() != 1 || !response.ParseFromString(received[0].message.body)) {
    ADD_FAILURE() << "not one response";
  }
  return response;
}

wire::ContainerRequest pod_with_a_gpu() {
  wire::ContainerRequest request;
  request.mutable_pod()->set_uid("uid");
  request.mutable_pod()->mutable_linux_pod()->set_cgroup_parent("/kubepods/poduid");
  request.mutable_container()->set_id("id");
  request.mutable_container()->set_name("main");
  wire::LinuxContainer& part = *request.mutable_container()->mutable_linux_container();
  part.mutable_resources()->mutable_cpu()->mutable_shares()->set_value(2048);
  part.mutable_resources()->mutable_cpu()->mutable_quota()->set_value(200'000);
  wire::LinuxDevice& device = *part.add_devices();
  device.set_path("/dev/nvidia0");
  device.set_type("c");
  device.set_major(195);
  return request;
}

class Sessions : public testing::Test {
 protected:
  Handlers handlers() {
    Handlers handlers;
    handlers.configured = [this](const std::string& engine) { engine_ = engine; };
    handlers.synchronize = [this](const std::vector<Container>& containers) { synchronized_ = containers; };
    handlers.create = [this](const Container& container) {
      created_ = container;
      return adjustment_;
    };
    handlers.update = [this](const Container& container) {
      updated_ = container;
      return adjustment_;
    };
    handlers.stopped = [this](const Container& container) { stopped_ = container.id; };
    return handlers;
  }

  Adjustment adjustment_;
  std::string engine_;
  std::vector<Container> synchronized_;
  Container created_;
  Container updated_;
  std::string stopped_;
  Session session_{"holdfast", "10", handlers()};
};

TEST(Frames, ComeInPiecesOfAnySize) {
  const Message first{1, MessageType::request, "hello"};
  const Message second{3, MessageType::response, std::string(70'000, 'x')};
  const std::string bytes = frame(Connection::plugin, first) + frame(Connection::runtime, second);
  for (const std::size_t size : {std::size_t(1), std::size_t(7), std::size_t(4096), bytes.size()}) {
    FrameReader reader;
    std::vector<Received> all;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      for (Received& one : *reader.feed(std::string_view(bytes).substr(at, size))) {
        all.push_back(std::move(one));
      }
    }
    EXPECT_EQ(all, (std::vector<Received>{{Connection::plugin, first}, {Connection::runtime, second}})) << size;
  }
}

TEST(Frames, AMessageMaySpanPieces) {
  const std::string bytes = frame(Connection::plugin, {1, MessageType::request, "hello"});
  const std::string message = bytes.substr(8);
  const auto piece = [](const std::string& part) {
    return std::string("\0\0\0\1\0\0\0", 7) + char(part.size()) + part;
  };
  FrameReader reader;
  EXPECT_TRUE(reader.feed(piece(message.substr(0, 4)))->empty());
  EXPECT_EQ(reader.feed(piece(message.substr(4)))->at(0).message.body, "hello");
}

TEST(Frames, RefuseWhatNriDoesNotAllow) {
  EXPECT_FALSE(FrameReader().feed(std::string("\0\0\0\1\xff\0\0\0", 8)));  // a piece that is too long
  EXPECT_FALSE(FrameReader().feed(std::string("\0\0\0\7\0\0\0\1", 8)));    // an unknown connection
  EXPECT_FALSE(FrameReader().feed(std::string("\0\0\0\1\0\0\0\x0a\x7f\0\0\0\0\0\0\1\1\0", 18)));
}

TEST_F(Sessions, RegistersAndIsConfigured) {
  FrameReader reader;
  const std::vector<Received> sent = *reader.feed(session_.open());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].connection, Connection::runtime);
  wire::Request request;
  wire::RegisterPluginRequest registration;
  ASSERT_TRUE(request.ParseFromString(sent[0].message.body) && registration.ParseFromString(request.payload()));
  EXPECT_EQ(request.method(), "RegisterPlugin");
  EXPECT_EQ(registration.plugin_idx(), "10");
  EXPECT_FALSE(session_.is_registered());
  ASSERT_TRUE(session_.feed(frame(Connection::runtime, {1, MessageType::response, ""})));
  EXPECT_TRUE(session_.is_registered());
  wire::ConfigureRequest configure;
  configure.set_runtime_name("containerd");
  configure.set_runtime_version("2.1");
  const wire::Response response = response_in(*session_.feed(call("Configure", configure.SerializeAsString())));
  wire::ConfigureResponse events;
  ASSERT_TRUE(events.ParseFromString(response.payload()));
  EXPECT_EQ(events.events(), 0x688);  // create, update, stop, remove
  EXPECT_EQ(engine_, "containerd 2.1");
}

TEST_F(Sessions, EndsWhereItIsRefused) {
  wire::Response refusal;
  refusal.mutable_status()->set_code(7);
  refusal.mutable_status()->set_message("no such index");
  const Result<std::string> fed =
      session_.feed(frame(Connection::runtime, {1, MessageType::response, refusal.SerializeAsString()}));
  ASSERT_FALSE(fed);
  EXPECT_NE(fed.error().message.find("no such index"), std::string::npos);
  EXPECT_FALSE(session_.feed(call("Shutdown", "")));
}

TEST_F(Sessions, CreatesWithAdjustments) {
  adjustment_.cpus = "2-3";
  adjustment_.memory_nodes = "1";
  adjustment_.has_no_quota = true;
  adjustment_.devices = {{"/dev/nvidia-uvm", {device::Kind::character, 510, 0}, 0666}};
  const std::string payload = pod_with_a_gpu().SerializeAsString();
  const wire::Response response = response_in(*session_.feed(call("CreateContainer", payload, 5)));
  EXPECT_EQ(created_.pod_uid, "uid");
  EXPECT_EQ(created_.cgroup_parent, "/kubepods/poduid");
  EXPECT_EQ(created_.time.shares, 2048U);
  ASSERT_EQ(created_.devices.size(), 1U);
  EXPECT_EQ(created_.devices[0].device.major, 195U);
  wire::CreateContainerResponse answer;
  ASSERT_TRUE(answer.ParseFromString(response.payload()));
  const wire::LinuxContainerAdjustment& part = answer.adjust().linux_adjustment();
  EXPECT_EQ(part.resources().cpu().cpus(), "2-3");
  EXPECT_EQ(part.resources().cpu().mems(), "1");
  EXPECT_EQ(part.resources().cpu().quota().value(), -1);
  ASSERT_EQ(part.devices_size(), 1);
  EXPECT_EQ(part.devices(0).major(), 510);
  ASSERT_EQ(part.resources().devices_size(), 1);
  EXPECT_TRUE(part.resources().devices(0).allow());
  EXPECT_EQ(part.resources().devices(0).access(), "rw");
}

TEST_F(Sessions, AnEmptyAdjustmentChangesNothing) {
  const std::string payload = pod_with_a_gpu().SerializeAsString();
  EXPECT_EQ(response_in(*session_.feed(call("CreateContainer", payload))).payload(), "");
  EXPECT_EQ(response_in(*session_.feed(call("UpdateContainer", payload))).payload(), "");
  adjustment_.cpus = "4";
  wire::UpdateContainerResponse answer;
  ASSERT_TRUE(answer.ParseFromString(response_in(*session_.feed(call("UpdateContainer", payload))).payload()));
  EXPECT_EQ(answer.update(0).container_id(), "id");
  EXPECT_EQ(answer.update(0).linux_update().resources().cpu().cpus(), "4");
}

TEST_F(Sessions, AnUpdateSaysWhatTheContainerIsToHave) {
  wire::ContainerRequest request = pod_with_a_gpu();
  request.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(4096);
  request.mutable_linux_resources()->mutable_cpu()->mutable_quota()->set_value(0);
  ASSERT_TRUE(session_.feed(call("UpdateContainer", request.SerializeAsString())));
  EXPECT_EQ(updated_.time.shares, 4096U);
  EXPECT_EQ(updated_.time.quota, 200'000) << "as it was";
}

TEST_F(Sessions, AContainerThatCannotBeReadIsLeftToTheEngine) {
  adjustment_.cpus = "4";
  for (const char* method : {"CreateContainer", "UpdateContainer"}) {
    const wire::Response response = response_in(*session_.feed(call(method, "\xff\xff")));
    EXPECT_EQ(response.status().code(), 0) << "with an error it would not be created";
    EXPECT_EQ(response.payload(), "");
  }
}

TEST_F(Sessions, SaysWhichCpusAContainerHasAlready) {
  wire::ContainerRequest request = pod_with_a_gpu();
  request.mutable_container()->mutable_linux_container()->mutable_resources()->mutable_cpu()->set_cpus("6-7");
  ASSERT_TRUE(session_.feed(call("CreateContainer", request.SerializeAsString())));
  EXPECT_EQ(created_.cpus, "6-7");
}

TEST_F(Sessions, SynchronizesInParts) {
  wire::SynchronizeRequest part;
  part.add_pods()->set_id("p");
  part.mutable_pods(0)->set_uid("uid");
  part.add_containers()->set_id("a");
  part.mutable_containers(0)->set_pod_sandbox_id("p");
  part.set_more(true);
  wire::SynchronizeResponse answer;
  ASSERT_TRUE(
      answer.ParseFromString(response_in(*session_.feed(call("Synchronize", part.SerializeAsString()))).payload()));
  EXPECT_TRUE(answer.more());
  EXPECT_TRUE(synchronized_.empty());
  part.set_more(false);
  part.clear_pods();  // it was in the part before
  part.mutable_containers(0)->set_id("b");
  part.mutable_containers(0)->set_state(wire::CONTAINER_STOPPED);
  ASSERT_TRUE(session_.feed(call("Synchronize", part.SerializeAsString())));
  ASSERT_EQ(synchronized_.size(), 2U);
  EXPECT_EQ(synchronized_[0].pod_uid, "uid");
  EXPECT_EQ(synchronized_[1].pod_uid, "uid");
  EXPECT_FALSE(synchronized_[0].has_ended);
  EXPECT_TRUE(synchronized_[1].has_ended);
}

TEST_F(Sessions, AContainerStopsByEveryWay) {
  const std::string payload = pod_with_a_gpu().SerializeAsString();
  ASSERT_TRUE(session_.feed(call("StopContainer", payload)));
  EXPECT_EQ(std::exchange(stopped_, ""), "id");
  ASSERT_TRUE(session_.feed(call("RemoveContainer", payload)));
  EXPECT_EQ(std::exchange(stopped_, ""), "id");
  wire::StateChangeEvent event;  // up to NRI 0.11
  event.set_event(wire::REMOVE_CONTAINER);
  event.mutable_container()->set_id("old");
  ASSERT_TRUE(session_.feed(call("StateChange", event.SerializeAsString())));
  EXPECT_EQ(stopped_, "old");
}

TEST_F(Sessions, AnswersWhatItDoesNotKnowWithAnError) {
  EXPECT_EQ(response_in(*session_.feed(call("SomethingNew", ""))).status().code(), 12);
  EXPECT_FALSE(session_.feed(frame(Connection::plugin, {1, MessageType::request, "\xff\xff"})));
}

}  // namespace
}  // namespace hf::nri
