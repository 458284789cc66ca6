#include "dra.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <boost/crc.hpp>
#include <nlohmann/json.hpp>

#include "adapters/kube/dra_health_v1.grpc.pb.h"
#include "adapters/kube/dra_health_v1alpha1.grpc.pb.h"
#include "adapters/kube/dra_v1.grpc.pb.h"
#include "adapters/kube/dra_v1beta1.grpc.pb.h"

namespace {

using Json = nlohmann::ordered_json;
namespace dra = k8s::io::kubelet::pkg::apis::dra;

constexpr std::chrono::seconds kLimit{45};  // kubelet's own

template <class Request>
Request request_of(const std::vector<std::string>& words) {
  Request request;
  for (std::size_t i = 0; i + 2 < words.size(); i += 3) {
    dra::v1::Claim& claim = *request.add_claims();
    claim.set_namespace_(words[i]);
    claim.set_name(words[i + 1]);
    claim.set_uid(words[i + 2]);
  }
  return request;
}

Json json_of(const dra::v1::NodePrepareResourceResponse& claim) {
  Json devices = Json::array();
  for (const dra::v1::Device& device : claim.devices()) {
    Json one = {{"pool", device.pool_name()}, {"device", device.device_name()}};
    for (const std::string& name : device.request_names()) {
      one["requests"].push_back(name);
    }
    for (const std::string& name : device.cdi_device_ids()) {
      one["cdi"].push_back(name);
    }
    devices.push_back(std::move(one));
  }
  return {{"devices", std::move(devices)}, {"error", claim.error()}};
}

// An entry of kubelet's file.
Json state_of(const dra::v1::Claim& claim, const std::string& driver, const std::string& pod, const Json& prepared) {
  Json devices = Json::array();
  for (const Json& device : prepared.at("devices")) {
    devices.push_back({{"PoolName", device.at("pool")},
                       {"DeviceName", device.at("device")},
                       {"ShareID", nullptr},
                       {"RequestNames", device.at("requests")},
                       {"CDIDeviceIDs", device.at("cdi")}});
  }
  return {{"ClaimUID", claim.uid()},
          {"ClaimName", claim.name()},
          {"Namespace", claim.namespace_()},
          {"PodUIDs", {{pod, Json::object()}}},
          {"DriverState", {{driver, {{"Devices", std::move(devices)}}}}}};
}

}  // namespace

struct DraDrivers::Driver {
  std::string name;
  bool is_beta = false;
  std::vector<std::string> services;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext health;
};

grpc::Status DraDrivers::add(const std::string& name, const std::string& endpoint,
                             const std::vector<std::string>& services) {
  const std::vector<std::string> known = is_old_ ? std::vector<std::string>{"v1beta1.DRAPlugin"}
                                                 : std::vector<std::string>{"v1.DRAPlugin", "v1beta1.DRAPlugin"};
  const auto chosen = std::ranges::find_first_of(services, known);
  if (chosen == services.end()) {
    return {grpc::StatusCode::UNKNOWN, "none of services supported by the plugin are supported by the kubelet"};
  }
  const auto driver = std::make_shared<Driver>();
  driver->name = name;
  driver->services = services;
  driver->is_beta = *chosen == "v1beta1.DRAPlugin";
  driver->channel = grpc::CreateChannel("unix:" + endpoint, grpc::InsecureChannelCredentials());
  {
    const std::scoped_lock lock(mutex_);
    drivers_[name] = driver;
  }
  print_({{"event", "driver"}, {"name", name}, {"service", *chosen}, {"endpoint", endpoint}});
  std::thread([this, driver] { read_health(driver); }).detach();
  return grpc::Status::OK;
}

void DraDrivers::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  drivers_.erase(name);
  print_({{"event", "driver-gone"}, {"name", name}});
}

DraDrivers::DriverPtr DraDrivers::find(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto found = drivers_.find(name);
  return found == drivers_.end() ? nullptr : found->second;
}

void DraDrivers::read_health(const DriverPtr& driver) const {
  std::unique_ptr<grpc::ClientReader<v1::NodeWatchResourcesResponse>> stream;
  if (is_old_) {
    stream = v1alpha1::DRAResourceHealth::NewStub(driver->channel)->NodeWatchResources(&driver->health, {});
  } else {
    stream = v1::DRAResourceHealth::NewStub(driver->channel)->NodeWatchResources(&driver->health, {});
  }
  for (v1::NodeWatchResourcesResponse list; stream->Read(&list);) {
    Json devices = Json::object();
    for (const v1::DeviceHealth& one : list.devices()) {
      devices[one.device().device_name()] = {{"pool", one.device().pool_name()},
                                             {"health", one.health() == v1::HEALTHY ? "Healthy" : "Unhealthy"},
                                             {"at", one.last_updated_time()},
                                             {"message", one.message()}};
    }
    print_({{"event", "health"}, {"driver", driver->name}, {"devices", devices}});
  }
  stream->Finish();
  print_({{"event", "health-ended"}, {"driver", driver->name}});
}

void DraDrivers::prepare(Driver& driver, const std::string& pod, const std::vector<std::string>& claims) {
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path() / "pods" / pod);
  const auto request = request_of<dra::v1::NodePrepareResourcesRequest>(claims);
  dra::v1::NodePrepareResourcesResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  const auto started = std::chrono::steady_clock::now();
  const grpc::Status status =
      driver.is_beta
          ? dra::v1beta1::DRAPlugin::NewStub(driver.channel)->NodePrepareResources(&context, request, &response)
          : dra::v1::DRAPlugin::NewStub(driver.channel)->NodePrepareResources(&context, request, &response);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - started;
  if (!status.ok()) {
    return print_({{"event", "error"}, {"code", int(status.error_code())}, {"message", status.error_message()}});
  }
  Json answers = Json::object();
  for (const dra::v1::Claim& claim : request.claims()) {
    const auto found = response.claims().find(claim.uid());
    answers[claim.uid()] = found == response.claims().end() ? Json() : json_of(found->second);
    if (found != response.claims().end() && found->second.error().empty()) {
      prepared_[claim.uid()] = state_of(claim, driver.name, pod, answers[claim.uid()]).dump();
    }
  }
  write();
  print_({{"event", "prepared"}, {"ms", took.count()}, {"claims", answers}});
}

void DraDrivers::unprepare(Driver& driver, const std::vector<std::string>& claims) {
  const auto request = request_of<dra::v1::NodeUnprepareResourcesRequest>(claims);
  dra::v1::NodeUnprepareResourcesResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  const grpc::Status status =
      driver.is_beta
          ? dra::v1beta1::DRAPlugin::NewStub(driver.channel)->NodeUnprepareResources(&context, request, &response)
          : dra::v1::DRAPlugin::NewStub(driver.channel)->NodeUnprepareResources(&context, request, &response);
  if (!status.ok()) {
    return print_({{"event", "error"}, {"code", int(status.error_code())}, {"message", status.error_message()}});
  }
  Json answers = Json::object();
  for (const auto& [uid, answer] : response.claims()) {
    answers[uid] = answer.error();
    prepared_.erase(uid);
  }
  write();
  print_({{"event", "unprepared"}, {"claims", answers}});
}

void DraDrivers::write() const {
  Json claims = Json::array();
  for (const auto& [uid, text] : prepared_) {
    claims.push_back(Json::parse(text));
  }
  const std::string data = Json({{"kind", "DRACheckpoint"},
                                 {"apiVersion", "checkpoint.dra.kubelet.k8s.io/v1"},
                                 {"ClaimInfoStateList", claims}})
                               .dump();
  boost::crc_32_type checksum;
  checksum.process_bytes(data.data(), data.size());
  std::ofstream(file_ + ".new") << Json({{"Data", data}, {"Checksum", checksum.checksum()}}).dump();
  std::filesystem::permissions(file_ + ".new", std::filesystem::perms(0600));
  std::filesystem::rename(file_ + ".new", file_);
}

bool DraDrivers::carry_out(const std::vector<std::string>& words) {
  if (words.size() < 2 || (words[0] != "prepare" && words[0] != "unprepare")) {
    return false;
  }
  const DriverPtr driver = find(words[1]);
  if (!driver) {
    print_({{"event", "error"}, {"message", "DRA driver " + words[1] + " is not registered"}});
  } else if (words[0] == "prepare" && words.size() > 2) {
    prepare(*driver, words[2], {words.begin() + 3, words.end()});
  } else {
    unprepare(*driver, {words.begin() + 2, words.end()});
  }
  return true;
}
