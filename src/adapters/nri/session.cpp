#include "adapters/nri/session.h"

#include "adapters/nri/nri.pb.h"

namespace hf::nri {
namespace {

constexpr std::size_t kMostCollected = std::size_t(32) << 20U;
constexpr int kUnimplemented = 12;  // of gRPC's codes
constexpr std::uint32_t kFirstStream = 1;
// Create 4, update 8, stop 10, remove 11: bit number minus one.
constexpr int kEvents = 1 << 3 | 1 << 7 | 1 << 9 | 1 << 10;

template <class T>
Result<T> parse(const std::string& bytes) {
  T value;
  if (!value.ParseFromString(bytes)) {
    return fail(std::errc::bad_message, "NRI: a message cannot be read");
  }
  return value;
}

// Engines send 0 for what is to stay as it is.
void read_time(const wire::LinuxCPU& cpu, cpu::CpuTime& time) {
  if (cpu.shares().value() != 0) {
    time.shares = cpu.shares().value();
  }
  if (cpu.quota().value() != 0) {
    time.quota = cpu.quota().value();
  }
  if (cpu.period().value() != 0) {
    time.period = cpu.period().value();
  }
}

Container container_of(const wire::PodSandbox& pod, const wire::Container& from) {
  Container container;
  container.id = from.id();
  container.name = from.name();
  container.pod_uid = pod.uid();
  container.pod_name = pod.name();
  container.pod_name_space = pod.name_space();
  container.cgroup_parent = pod.linux_pod().cgroup_parent();
  container.has_ended = from.state() == wire::CONTAINER_STOPPED;
  const wire::LinuxCPU& cpu = from.linux_container().resources().cpu();
  read_time(cpu, container.time);
  container.cpus = cpu.cpus();
  for (const wire::LinuxDevice& device : from.linux_container().devices()) {
    Device& added = container.devices.emplace_back();
    added.path = device.path();
    added.device.kind = device.type() == "b" ? device::Kind::block : device::Kind::character;
    added.device.major = std::uint32_t(device.major());
    added.device.minor = std::uint32_t(device.minor());
  }
  return container;
}

// The pod of a container may be in another part. Messages one behind the other are one, with the lists of all.
std::vector<Container> containers_in(const std::string& parts) {
  const Result<wire::SynchronizeRequest> all = parse<wire::SynchronizeRequest>(parts);
  std::map<std::string, const wire::PodSandbox*> pods;
  std::vector<Container> containers;
  if (!all) {
    return containers;
  }
  for (const wire::PodSandbox& pod : all->pods()) {
    pods[pod.id()] = &pod;
  }
  for (const wire::Container& container : all->containers()) {
    const auto pod = pods.find(container.pod_sandbox_id());
    containers.push_back(container_of(pod == pods.end() ? wire::PodSandbox() : *pod->second, container));
  }
  return containers;
}

bool changes_cpus(const Adjustment& adjustment) {
  return !adjustment.cpus.empty() || !adjustment.memory_nodes.empty() || adjustment.has_no_quota;
}

void add_cpus(const Adjustment& adjustment, wire::LinuxResources& resources) {
  if (!adjustment.cpus.empty()) {
    resources.mutable_cpu()->set_cpus(adjustment.cpus);
  }
  if (!adjustment.memory_nodes.empty()) {
    resources.mutable_cpu()->set_mems(adjustment.memory_nodes);
  }
  if (adjustment.has_no_quota) {
    resources.mutable_cpu()->mutable_quota()->set_value(-1);
  }
}

void add_device(const Device& device, wire::LinuxContainerAdjustment& adjustment) {
  const char* const type = device.device.kind == device::Kind::block ? "b" : "c";
  wire::LinuxDevice& node = *adjustment.add_devices();
  node.set_path(device.path);
  node.set_type(type);
  node.set_major(device.device.major);
  node.set_minor(device.device.minor);
  node.mutable_file_mode()->set_value(device.mode.value_or(0666));
  wire::LinuxDeviceCgroup& rule = *adjustment.mutable_resources()->add_devices();
  rule.set_allow(true);
  rule.set_type(type);
  rule.mutable_major()->set_value(device.device.major);
  rule.mutable_minor()->set_value(device.device.minor);
  rule.set_access("rw");
}

std::string adjusted(const Adjustment& adjustment) {
  wire::CreateContainerResponse response;
  if (changes_cpus(adjustment) || !adjustment.devices.empty()) {
    wire::LinuxContainerAdjustment& linux_part = *response.mutable_adjust()->mutable_linux_adjustment();
    if (changes_cpus(adjustment)) {
      add_cpus(adjustment, *linux_part.mutable_resources());
    }
    for (const Device& device : adjustment.devices) {
      add_device(device, linux_part);
    }
  }
  return response.SerializeAsString();
}

std::string updated(const std::string& id, const Adjustment& adjustment) {
  wire::UpdateContainerResponse response;
  if (changes_cpus(adjustment)) {
    wire::ContainerUpdate& update = *response.add_update();
    update.set_container_id(id);
    add_cpus(adjustment, *update.mutable_linux_update()->mutable_resources());
  }
  return response.SerializeAsString();
}

std::string respond(std::uint32_t stream, const Result<std::string>& payload) {
  wire::Response response;
  if (payload) {
    response.set_payload(*payload);
  } else {
    response.mutable_status()->set_code(kUnimplemented);
    response.mutable_status()->set_message(payload.error().message);
  }
  return frame(Connection::plugin, {stream, MessageType::response, response.SerializeAsString()});
}

}  // namespace

std::string Session::open() {
  wire::RegisterPluginRequest registration;
  registration.set_plugin_name(name_);
  registration.set_plugin_idx(index_);
  wire::Request request;
  request.set_service("nri.pkg.api.v1alpha1.Runtime");
  request.set_method("RegisterPlugin");
  request.set_payload(registration.SerializeAsString());
  request.set_timeout_nano(5'000'000'000);
  return frame(Connection::runtime, {kFirstStream, MessageType::request, request.SerializeAsString()});
}

Result<std::string> Session::feed(std::string_view bytes) {
  std::string answers;
  for (const Received& received : TRY(reader_.feed(bytes))) {
    answers += TRY(handle(received));
  }
  return answers;
}

Result<std::string> Session::handle(const Received& received) {
  if (received.connection == Connection::runtime) {
    const wire::Response response = TRY(parse<wire::Response>(received.message.body));
    if (response.status().code() != 0) {
      return fail(std::errc::connection_refused, "NRI: the engine refuses: " + response.status().message());
    }
    is_registered_ = true;
    return std::string();
  }
  if (received.message.type != MessageType::request) {
    return std::string();
  }
  const wire::Request request = TRY(parse<wire::Request>(received.message.body));
  if (request.method() == "Shutdown") {
    return fail(std::errc::not_connected, "NRI: the engine shuts down");
  }
  return respond(received.message.stream, answer(request.method(), request.payload()));
}

Result<std::string> Session::synchronize(const std::string& payload) {
  const wire::SynchronizeRequest part = TRY(parse<wire::SynchronizeRequest>(payload));
  if (collected_.size() + payload.size() > kMostCollected) {
    return fail(std::errc::file_too_large, "the engine has too many containers");
  }
  collected_ += payload;
  wire::SynchronizeResponse response;
  response.set_more(part.more());
  if (!part.more()) {
    handlers_.synchronize(containers_in(std::exchange(collected_, {})));
  }
  return response.SerializeAsString();
}

Result<std::string> Session::answer(const std::string& method, const std::string& payload) {
  if (method == "Configure") {
    const wire::ConfigureRequest request = TRY(parse<wire::ConfigureRequest>(payload));
    handlers_.configured(request.runtime_name() + " " + request.runtime_version());
    wire::ConfigureResponse response;
    response.set_events(kEvents);
    return response.SerializeAsString();
  }
  if (method == "Synchronize") {
    return synchronize(payload);
  }
  if (method == "StateChange") {
    const wire::StateChangeEvent event = TRY(parse<wire::StateChangeEvent>(payload));
    if (event.event() == wire::REMOVE_CONTAINER) {
      handlers_.stopped(container_of(event.pod(), event.container()));
    }
    return std::string();
  }
  const bool is_ours = method == "CreateContainer" || method == "UpdateContainer" || method == "StopContainer" ||
                       method == "RemoveContainer";
  if (!is_ours) {
    return fail(std::errc::function_not_supported, "no method " + method);
  }
  const Result<wire::ContainerRequest> request = parse<wire::ContainerRequest>(payload);
  if (!request) {
    return std::string();  // with an error the engine would not create the container
  }
  Container container = container_of(request->pod(), request->container());
  read_time(request->linux_resources().cpu(), container.time);
  if (method == "CreateContainer") {
    return adjusted(handlers_.create(container));
  }
  if (method == "UpdateContainer") {
    return updated(container.id, handlers_.update(container));
  }
  handlers_.stopped(container);
  return std::string();
}

}  // namespace hf::nri
