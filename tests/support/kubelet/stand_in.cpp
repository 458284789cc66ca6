// kubelet_stand_in DIRECTORY [--old]: kubelet's side of the device plugin API, for tests. It removes every socket of
// the directory, serves kubelet.sock, dials each plugin that registers, asks for its options within the registration,
// and reads its list. What happens is printed as one JSON object a line; commands are read from standard input:
//   allocate RESOURCE [ID…]         prefer RESOURCE COUNT AVAILABLE[,…] [MUST[,…]]         prestart RESOURCE ID…
//   disconnect RESOURCE             end
// --old: as kubelet up to 1.36, it disconnects whichever plugin has the resource when any plugin's list ends.
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "adapters/kubelet/device_plugin.grpc.pb.h"

namespace {

using Json = nlohmann::ordered_json;

std::mutex printing;

void print(const Json& event) {
  const std::scoped_lock lock(printing);
  std::cout << event.dump() << std::endl;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    parts.push_back(part);
  }
  return parts;
}

Json json_of(const v1beta1::AllocateResponse& response) {
  Json containers = Json::array();
  for (const v1beta1::ContainerAllocateResponse& one : response.container_responses()) {
    Json container = {{"envs", Json::object()},
                      {"mounts", Json::array()},
                      {"devices", Json::array()},
                      {"annotations", Json::object()},
                      {"cdi", Json::array()}};
    for (const auto& [name, value] : one.envs()) {
      container["envs"][name] = value;
    }
    for (const auto& [name, value] : one.annotations()) {
      container["annotations"][name] = value;
    }
    for (const v1beta1::Mount& mount : one.mounts()) {
      container["mounts"].push_back({mount.container_path(), mount.host_path(), mount.read_only()});
    }
    for (const v1beta1::DeviceSpec& device : one.devices()) {
      container["devices"].push_back({device.container_path(), device.host_path(), device.permissions()});
    }
    for (const v1beta1::CDIDevice& device : one.cdi_devices()) {
      container["cdi"].push_back(device.name());
    }
    containers.push_back(std::move(container));
  }
  return containers;
}

// One registered plugin.
struct Endpoint {
  std::string resource;
  std::string name;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext stream;
};
using EndpointPtr = std::shared_ptr<Endpoint>;

class Kubelet final : public v1beta1::Registration::Service {
 public:
  Kubelet(std::string directory, bool is_old) : directory_(std::move(directory)), is_old_(is_old) {}

  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    if (request->version() != "v1beta1") {
      return {grpc::StatusCode::UNKNOWN, "unsupported version: " + request->version()};
    }
    if (request->resource_name().find('/') == std::string::npos) {
      return {grpc::StatusCode::UNKNOWN, "invalid resource name " + request->resource_name()};
    }
    const auto endpoint = std::make_shared<Endpoint>();
    endpoint->resource = request->resource_name();
    endpoint->name = request->endpoint();
    endpoint->stub = v1beta1::DevicePlugin::NewStub(
        grpc::CreateChannel("unix:" + directory_ + "/" + request->endpoint(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1beta1::DevicePluginOptions options;
    const grpc::Status asked = endpoint->stub->GetDevicePluginOptions(&context, {}, &options);
    if (!asked.ok()) {
      return asked;
    }
    print({{"event", "registered"},
           {"resource", endpoint->resource},
           {"endpoint", endpoint->name},
           {"prefers", options.get_preferred_allocation_available()}});
    {
      const std::scoped_lock lock(mutex_);
      endpoints_[endpoint->resource] = endpoint;
    }
    std::thread([this, endpoint] { read_list(endpoint); }).detach();
    return grpc::Status::OK;
  }

  EndpointPtr find(const std::string& resource) {
    const std::scoped_lock lock(mutex_);
    const auto found = endpoints_.find(resource);
    return found == endpoints_.end() ? nullptr : found->second;
  }

 private:
  void read_list(const EndpointPtr& endpoint) {
    const auto stream = endpoint->stub->ListAndWatch(&endpoint->stream, {});
    for (v1beta1::ListAndWatchResponse list; stream->Read(&list);) {
      Json devices = Json::object();
      for (const v1beta1::Device& device : list.devices()) {
        Json& entry = devices[device.id()] = {{"health", device.health()}, {"numa", Json::array()}};
        for (const v1beta1::NUMANode& node : device.topology().nodes()) {
          entry["numa"].push_back(node.id());
        }
      }
      print({{"event", "list"}, {"resource", endpoint->resource}, {"endpoint", endpoint->name}, {"devices", devices}});
    }
    stream->Finish();
    print({{"event", "ended"}, {"resource", endpoint->resource}, {"endpoint", endpoint->name}});
    const std::scoped_lock lock(mutex_);
    const auto now = endpoints_.find(endpoint->resource);
    if (now != endpoints_.end() && (now->second == endpoint || is_old_)) {
      now->second->stream.TryCancel();
      endpoints_.erase(now);
    }
  }

  std::string directory_;
  bool is_old_;
  std::mutex mutex_;
  std::map<std::string, EndpointPtr> endpoints_;
};

void carry_out(Kubelet& kubelet, const std::vector<std::string>& words) {
  const EndpointPtr endpoint = kubelet.find(words.size() > 1 ? words[1] : "");
  if (!endpoint) {
    print({{"event", "error"}, {"message", "no endpoint"}});
    return;
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::Status status;
  if (words[0] == "allocate") {
    v1beta1::AllocateRequest request;
    v1beta1::AllocateResponse response;
    v1beta1::ContainerAllocateRequest& container = *request.add_container_requests();
    for (std::size_t i = 2; i < words.size(); ++i) {
      container.add_devices_ids(words[i]);
    }
    const auto started = std::chrono::steady_clock::now();
    status = endpoint->stub->Allocate(&context, request, &response);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - started;
    if (status.ok()) {
      print({{"event", "allocated"}, {"us", took.count()}, {"containers", json_of(response)}});
      return;
    }
  } else if (words[0] == "prefer" && words.size() >= 4) {
    v1beta1::PreferredAllocationRequest request;
    v1beta1::PreferredAllocationResponse response;
    v1beta1::ContainerPreferredAllocationRequest& container = *request.add_container_requests();
    container.set_allocation_size(std::stoi(words[2]));
    for (const std::string& id : split(words[3], ',')) {
      container.add_available_deviceids(id);
    }
    for (const std::string& id : split(words.size() > 4 ? words[4] : "", ',')) {
      container.add_must_include_deviceids(id);
    }
    status = endpoint->stub->GetPreferredAllocation(&context, request, &response);
    if (status.ok()) {
      Json ids = Json::array();
      for (const std::string& id : response.container_responses(0).deviceids()) {
        ids.push_back(id);
      }
      print({{"event", "preferred"}, {"devices", ids}});
      return;
    }
  } else if (words[0] == "prestart") {
    v1beta1::PreStartContainerRequest request;
    v1beta1::PreStartContainerResponse response;
    status = endpoint->stub->PreStartContainer(&context, request, &response);
    if (status.ok()) {
      print({{"event", "prestarted"}});
      return;
    }
  } else if (words[0] == "disconnect") {
    endpoint->stream.TryCancel();
    return;
  }
  print({{"event", "error"}, {"code", int(status.error_code())}, {"message", status.error_message()}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argv[1];
  const bool is_old = argc > 2 && std::string(argv[2]) == "--old";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_socket()) {
      std::filesystem::remove(entry.path());
    }
  }
  Kubelet kubelet(directory, is_old);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + directory + "/kubelet.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(&kubelet);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  print({{"event", "ready"}});
  for (std::string line; std::getline(std::cin, line) && line != "end";) {
    carry_out(kubelet, split(line, ' '));
  }
  std::_Exit(0);  // as a kubelet that is killed
}
