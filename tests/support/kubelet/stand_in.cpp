// kubelet_stand_in DIRECTORY [--old] [--slow MS] [--registry DIRECTORY]: kubelet's side of the device plugin API, for
// tests. It removes every socket of the directory, serves kubelet.sock, dials each plugin that registers, asks for its
// options within the registration, and reads its list. What happens is printed as one JSON object a line; commands are
// read from standard input:
//   allocate RESOURCE [ID…]     prefer RESOURCE COUNT AVAILABLE[,…] [MUST[,…]]     prestart RESOURCE ID…
//   disconnect RESOURCE         healthy RESOURCE     end
//   pod UID RESOURCE COUNT      admits a pod whose only container, main, wants so many devices     delete UID
//   prepare DRIVER POD (NAMESPACE NAME UID)…    unprepare DRIVER (NAMESPACE NAME UID)…   claims of DRA drivers
// What it gave to pods is kept in kubelet_internal_checkpoint, as kubelet writes it, and read again at the start. A pod
// has a directory in DIRECTORY/../pods as long as it lives. It stays in the checkpoint until another one is admitted.
// --old: as kubelet up to 1.36, it disconnects whichever plugin has the resource when any plugin's list ends.
// It also knows no DRA but v1beta1.
// --slow: so long passes before it answers a registration. --registry: it looks for plugins' sockets there as well.
//
// kubelet_stand_in --check FILE: exits with 0 if that is such a checkpoint with the right checksum.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
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

#include "adapters/kube/device_plugin.grpc.pb.h"
#include "adapters/kube/plugin_registration.grpc.pb.h"
#include "checkpoint.h"
#include "dra.h"

namespace {

using Json = nlohmann::ordered_json;

std::mutex printing;

void print(const Json& event) {
  const std::scoped_lock lock(printing);
  std::cout << event.dump() << std::endl;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
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
  bool prefers = false;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext stream;
};
using EndpointPtr = std::shared_ptr<Endpoint>;

struct Options {
  bool is_old = false;
  std::chrono::milliseconds delay{0};
  std::string registry;
};

struct ListedDevice {
  bool is_healthy = false;
  std::vector<long> nodes;  // NUMA
};

class Kubelet final : public v1beta1::Registration::Service {
 public:
  Kubelet(std::string directory, Options options)
      : directory_(std::move(directory)),
        options_(std::move(options)),
        drivers_(directory_ + "/../dra_manager_state", options_.is_old, print) {
    if (std::filesystem::exists(checkpoint_file())) {
      checkpoint_ = parse(read_file(checkpoint_file()));
    }
  }

  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    if (request->version() != "v1beta1") {
      return {grpc::StatusCode::UNKNOWN, "unsupported version: " + request->version()};
    }
    if (request->resource_name().find('/') == std::string::npos) {
      return {grpc::StatusCode::UNKNOWN, "invalid resource name " + request->resource_name()};
    }
    std::this_thread::sleep_for(options_.delay);
    return add(request->resource_name(), request->endpoint(), directory_ + "/" + request->endpoint());
  }

  // A plugin that registered, or that the watcher of sockets found.
  grpc::Status add(const std::string& resource, const std::string& name, const std::string& path) {
    const auto endpoint = std::make_shared<Endpoint>();
    endpoint->resource = resource;
    endpoint->name = name;
    endpoint->stub =
        v1beta1::DevicePlugin::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1beta1::DevicePluginOptions options;
    const grpc::Status asked = endpoint->stub->GetDevicePluginOptions(&context, {}, &options);
    if (!asked.ok()) {
      return asked;
    }
    endpoint->prefers = options.get_preferred_allocation_available();
    print({{"event", "registered"},
           {"resource", endpoint->resource},
           {"endpoint", endpoint->name},
           {"prefers", endpoint->prefers}});
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

  DraDrivers& drivers() { return drivers_; }

  // Sockets that appear in the registry, for ever.
  void watch_registry() {
    std::set<std::pair<std::string, ino_t>> seen;
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
      std::error_code gone;
      std::erase_if(found_, [this](const auto& found) {
        const bool is_gone = !std::filesystem::exists(found.first);
        if (is_gone) {
          drivers_.remove(found.second);
        }
        return is_gone;
      });
      for (const auto& entry : std::filesystem::directory_iterator(options_.registry, gone)) {
        struct stat status{};
        if (::stat(entry.path().c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
            !seen.contains({entry.path().string(), status.st_ino}) && find_plugin(entry.path().string())) {
          seen.emplace(entry.path().string(), status.st_ino);
        }
      }
    }
  }

  std::set<std::string> healthy(const std::string& resource) {
    const std::scoped_lock lock(mutex_);
    std::set<std::string> ids;
    for (const auto& [id, device] : devices_[resource]) {
      if (device.is_healthy) {
        ids.insert(id);
      }
    }
    return ids;
  }

  // Of pods that were admitted and live.
  std::set<std::string> used(const std::string& resource) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(checkpoint_.pods,
                  [this](const PodDevices& pod) { return !std::filesystem::exists(directory_of(pod.uid)); });
    std::set<std::string> used;
    for (const PodDevices& pod : checkpoint_.pods) {
      for (const auto& [node, ids] : pod.ids) {
        if (pod.resource == resource) {
          used.insert(ids.begin(), ids.end());
        }
      }
    }
    return used;
  }

  void remember(PodDevices pod, const std::vector<std::string>& ids) {
    const std::scoped_lock lock(mutex_);
    for (const std::string& id : ids) {
      const std::vector<long>& nodes = devices_[pod.resource][id].nodes;
      pod.ids[nodes.empty() ? -1 : nodes.front()].push_back(id);
    }
    std::filesystem::create_directories(directory_of(pod.uid));
    checkpoint_.pods.push_back(std::move(pod));
    write_checkpoint();
  }

  void end(const std::string& uid) { std::filesystem::remove_all(directory_of(uid)); }

 private:
  // False where it does not answer: kubelet tries again.
  bool find_plugin(const std::string& socket) {
    const auto stub = pluginregistration::Registration::NewStub(
        grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
    grpc::ClientContext asking;
    asking.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    pluginregistration::PluginInfo info;
    if (!stub->GetInfo(&asking, {}, &info).ok()) {
      return false;
    }
    const std::string endpoint = info.endpoint().empty() ? socket : info.endpoint();
    const bool is_driver = info.type() == "DRAPlugin";
    const grpc::Status added =
        is_driver
            ? drivers_.add(info.name(), endpoint, {info.supported_versions().begin(), info.supported_versions().end()})
            : add(info.name(), std::filesystem::path(socket).filename(), endpoint);
    if (is_driver) {
      found_[socket] = info.name();
    }
    grpc::ClientContext telling;
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(added.ok());
    status.set_error(added.error_message());
    pluginregistration::RegistrationStatusResponse response;
    stub->NotifyRegistrationStatus(&telling, status, &response);
    return true;
  }

  [[nodiscard]] std::string directory_of(const std::string& pod) const { return directory_ + "/../pods/" + pod; }

  [[nodiscard]] std::string checkpoint_file() const { return directory_ + "/kubelet_internal_checkpoint"; }

  void write_checkpoint() {  // locked
    const std::string file = checkpoint_file();
    std::ofstream(file + ".new") << render(checkpoint_);
    std::filesystem::permissions(file + ".new", std::filesystem::perms(0600));
    std::filesystem::rename(file + ".new", file);
  }

  void take_list(const std::string& resource, const v1beta1::ListAndWatchResponse& list) {
    const std::scoped_lock lock(mutex_);
    devices_[resource].clear();
    checkpoint_.registered[resource].clear();
    for (const v1beta1::Device& device : list.devices()) {
      ListedDevice& listed = devices_[resource][device.id()];
      listed.is_healthy = device.health() == "Healthy";
      for (const v1beta1::NUMANode& node : device.topology().nodes()) {
        listed.nodes.push_back(node.id());
      }
      if (listed.is_healthy) {
        checkpoint_.registered[resource].push_back(device.id());
      }
    }
    write_checkpoint();
  }

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
      take_list(endpoint->resource, list);
      print({{"event", "list"}, {"resource", endpoint->resource}, {"endpoint", endpoint->name}, {"devices", devices}});
    }
    stream->Finish();
    print({{"event", "ended"}, {"resource", endpoint->resource}, {"endpoint", endpoint->name}});
    const std::scoped_lock lock(mutex_);
    const auto now = endpoints_.find(endpoint->resource);
    if (now != endpoints_.end() && (now->second == endpoint || options_.is_old)) {
      now->second->stream.TryCancel();
      endpoints_.erase(now);
      for (auto& [id, device] : devices_[endpoint->resource]) {
        device.is_healthy = false;
      }
    }
  }

  std::string directory_;
  Options options_;
  std::mutex mutex_;
  std::map<std::string, EndpointPtr> endpoints_;
  std::map<std::string, std::map<std::string, ListedDevice>> devices_;  // by resource and id
  Checkpoint checkpoint_;
  DraDrivers drivers_;
  std::map<std::string, std::string> found_;  // the names of drivers, by socket
};

void refuse(const std::string& message) { print({{"event", "error"}, {"message", message}}); }

// The ids among which the plugin prefers some: as many as are wanted.
std::vector<std::string> choose(const Endpoint& endpoint, const std::vector<std::string>& available, int count) {
  grpc::ClientContext context;
  v1beta1::PreferredAllocationRequest request;
  v1beta1::PreferredAllocationResponse response;
  v1beta1::ContainerPreferredAllocationRequest& container = *request.add_container_requests();
  container.set_allocation_size(count);
  container.mutable_available_deviceids()->Assign(available.begin(), available.end());
  if (endpoint.prefers && endpoint.stub->GetPreferredAllocation(&context, request, &response).ok() &&
      response.container_responses_size() == 1 && response.container_responses(0).deviceids_size() == count) {
    const auto& ids = response.container_responses(0).deviceids();
    return {ids.begin(), ids.end()};
  }
  return {available.begin(), available.begin() + count};
}

void admit(Kubelet& kubelet, const std::string& uid, const std::string& resource, int count) {
  std::vector<std::string> available;
  const std::set<std::string> healthy = kubelet.healthy(resource);
  const std::set<std::string> used = kubelet.used(resource);
  std::ranges::set_difference(healthy, used, std::back_inserter(available));
  const EndpointPtr endpoint = kubelet.find(resource);
  if (!endpoint || int(available.size()) < count) {
    return refuse("requested number of devices unavailable for " + resource + ". Requested: " + std::to_string(count) +
                  ", Available: " + std::to_string(available.size()));
  }
  const std::vector<std::string> ids = choose(*endpoint, available, count);
  grpc::ClientContext context;
  v1beta1::AllocateRequest request;
  v1beta1::AllocateResponse response;
  request.add_container_requests()->mutable_devices_ids()->Assign(ids.begin(), ids.end());
  const grpc::Status status = endpoint->stub->Allocate(&context, request, &response);
  if (!status.ok() || response.container_responses_size() != 1) {
    return refuse(status.error_message());
  }
  kubelet.remember({uid, "main", resource, {}, response.container_responses(0).SerializeAsString()}, ids);
  print({{"event", "admitted"}, {"uid", uid}, {"ids", ids}, {"containers", json_of(response)}});
}

// Commands that kubelet answers without a plugin, or for which it chooses one itself.
bool is_carried_out_by_kubelet(Kubelet& kubelet, const std::vector<std::string>& words) {
  if (words.size() == 4 && words[0] == "pod") {
    admit(kubelet, words[1], words[2], std::stoi(words[3]));
  } else if (words.size() == 2 && words[0] == "delete") {
    kubelet.end(words[1]);
    print({{"event", "deleted"}});
  } else if (words.size() == 2 && words[0] == "healthy") {
    print({{"event", "healthy"}, {"ids", kubelet.healthy(words[1])}, {"used", kubelet.used(words[1])}});
  } else {
    return kubelet.drivers().carry_out(words);
  }
  return true;
}

void carry_out(Kubelet& kubelet, const std::vector<std::string>& words) {
  if (is_carried_out_by_kubelet(kubelet, words)) {
    return;
  }
  const EndpointPtr endpoint = kubelet.find(words.size() > 1 ? words[1] : "");
  if (!endpoint) {
    return refuse("no endpoint");
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

Options options_in(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string value = i + 1 < words.size() ? words[i + 1] : "";
    options.is_old = options.is_old || words[i] == "--old";
    if (words[i] == "--slow") {
      options.delay = std::chrono::milliseconds(std::stoi(value));
    } else if (words[i] == "--registry") {
      options.registry = value;
    }
  }
  return options;
}

bool is_checkpoint(const std::string& path) try {
  parse(read_file(path));
  return true;
} catch (const std::exception& problem) {
  std::cerr << path << ": " << problem.what() << '\n';
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argv[1];
  if (argc > 2 && std::string(argv[1]) == "--check") {
    return is_checkpoint(argv[2]) ? 0 : 1;
  }
  const Options options = options_in({argv + 2, argv + argc});
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_socket()) {
      std::filesystem::remove(entry.path());
    }
  }
  Kubelet kubelet(directory, options);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + directory + "/kubelet.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(&kubelet);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  print({{"event", "ready"}});
  if (!options.registry.empty()) {
    std::thread([&kubelet] { kubelet.watch_registry(); }).detach();
  }
  for (std::string line; std::getline(std::cin, line) && line != "end";) {
    carry_out(kubelet, split(line, ' '));
  }
  std::_Exit(0);  // as a kubelet that is killed
}
