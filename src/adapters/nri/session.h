// Session: the plugin's side of NRI as a state machine: bytes of the engine go in, bytes for the engine come out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/nri/frame.h"
#include "core/base/result.h"
#include "core/cpu/request.h"
#include "core/device/device.h"

namespace hf::nri {

struct Device {
  std::string path;
  device::Device device;
  std::optional<std::uint32_t> mode;
};

// A container as the engine describes it.
struct Container {
  std::string id;
  std::string name;
  std::string pod_uid;
  std::string pod_name;
  std::string pod_name_space;
  std::string cgroup_parent;  // of its pod: it tells the QoS class
  bool has_ended = false;
  cpu::CpuTime time;  // after the update, where it is updated
  std::string cpus;   // that it has already: from its creator, or from a plugin that was asked before; "": none
  std::vector<Device> devices;
};

// What a container gets beyond what the engine would give it.
struct Adjustment {
  std::string cpus;          // "": as it is
  std::string memory_nodes;  // "": as it is
  bool has_no_quota = false;
  std::vector<Device> devices;  // nodes, with rules that allow to read and write them
};

// Called by the session. An empty adjustment changes nothing.
struct Handlers {
  std::function<void(const std::string& engine)> configured;
  std::function<void(const std::vector<Container>&)> synchronize;  // all that the engine has
  std::function<Adjustment(const Container&)> create;
  std::function<Adjustment(const Container&)> update;  // without devices: they stay as they were created
  std::function<void(const Container&)> stopped;
  std::function<void()> lost = {};  // by the client: the connection has ended, or could not be opened
};

class Session {
 public:
  // `index`: two digits, the plugin's place among the others.
  Session(std::string name, std::string index, Handlers handlers)
      : name_(std::move(name)), index_(std::move(index)), handlers_(std::move(handlers)) {}

  std::string open();  // the first bytes: we register
  // Returns the answers. Fails where the engine does not speak NRI, refuses us or shuts down: the session is over.
  Result<std::string> feed(std::string_view bytes);
  [[nodiscard]] bool is_registered() const { return is_registered_; }

 private:
  Result<std::string> handle(const Received& received);
  Result<std::string> answer(const std::string& method, const std::string& payload);
  Result<std::string> synchronize(const std::string& payload);

  std::string name_;
  std::string index_;
  Handlers handlers_;
  FrameReader reader_;
  std::string collected_;  // the messages of a synchronisation in several parts
  bool is_registered_ = false;
};

}  // namespace hf::nri
