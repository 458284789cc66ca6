// WatcherService: answers kubelet's plugin watcher, which finds a plugin by its socket and asks what it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/net/event_loop.h"

namespace grpc {
class Service;
}

namespace hf::plugin {

struct PluginIdentity {
  std::string type;  // "DevicePlugin", "DRAPlugin"
  std::string name;
  std::string endpoint;  // the path of the socket that kubelet calls then
  std::vector<std::string> versions;
};

// `registered` is called in the loop.
std::unique_ptr<grpc::Service> make_watcher_service(
    kernel::EventLoop& loop, PluginIdentity identity,
    std::function<void(bool is_registered, const std::string& error)> registered);

}  // namespace hf::plugin
