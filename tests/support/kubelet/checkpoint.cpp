#include "checkpoint.h"

#include <cstdint>
#include <stdexcept>

#include <boost/beast/core/detail/base64.hpp>
#include <nlohmann/json.hpp>

#include "adapters/kube/cpu_checkpoint.h"

namespace {

using Json = nlohmann::ordered_json;
namespace base64 = boost::beast::detail::base64;

std::string encode(const std::string& bytes) {
  std::string text(base64::encoded_size(bytes.size()), '\0');
  text.resize(base64::encode(text.data(), bytes.data(), bytes.size()));
  return text;
}

std::string decode(const std::string& text) {
  std::string bytes(base64::decoded_size(text.size()), '\0');
  bytes.resize(base64::decode(bytes.data(), text.data(), text.size()).first);
  return bytes;
}

std::string dump_list(const std::vector<std::string>& list) {
  std::string text = "[";
  for (const auto& one : list) {
    text += (text.size() > 1 ? " " : "") + one;
  }
  return text + "]";
}

template <typename Map, typename Key>
std::string dump_map(const Map& map, Key key_text) {
  std::string text = "map[";
  for (const auto& [key, list] : map) {
    text += (text.size() > 4 ? " " : "") + key_text(key) + ":" + dump_list(list);
  }
  return text + "]";
}

std::string dump_bytes(const std::string& bytes) {
  std::vector<std::string> numbers;
  for (const char byte : bytes) {
    numbers.push_back(std::to_string(std::uint8_t(byte)));
  }
  return dump_list(numbers);
}

std::string dump(const PodDevices& pod) {
  return "{PodUID:(string)" + pod.uid + " ContainerName:(string)" + pod.container + " ResourceName:(string)" +
         pod.resource + " DeviceIDs:(checkpoint.DevicesPerNUMA)" +
         dump_map(pod.ids, [](long node) { return std::to_string(node); }) + " AllocResp:([]uint8)" +
         dump_bytes(pod.response) + "}";
}

// Go's dump of the value, from which kubelet makes the checksum.
std::string dump(const Checkpoint& checkpoint) {
  std::vector<std::string> pods;
  for (const PodDevices& pod : checkpoint.pods) {
    pods.push_back(dump(pod));
  }
  return "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)" +
         (pods.empty() ? "<nil>" : dump_list(pods)) + " RegisteredDevices:(map[string][]string)" +
         dump_map(checkpoint.registered, [](const std::string& resource) { return resource; }) + "}";
}

}  // namespace

std::string render(const Checkpoint& checkpoint) {
  Json entries;  // null where there are none
  for (const PodDevices& pod : checkpoint.pods) {
    Json ids = Json::object();
    for (const auto& [node, list] : pod.ids) {
      ids[std::to_string(node)] = list;
    }
    entries.push_back({{"PodUID", pod.uid},
                       {"ContainerName", pod.container},
                       {"ResourceName", pod.resource},
                       {"DeviceIDs", ids},
                       {"AllocResp", encode(pod.response)}});
  }
  Json registered = Json::object();
  for (const auto& [resource, ids] : checkpoint.registered) {
    registered[resource] = ids;
  }
  const Json data = {{"PodDeviceEntries", entries}, {"RegisteredDevices", registered}};
  return Json({{"Data", data}, {"Checksum", hf::kube::fnv1a(dump(checkpoint))}}).dump();
}

Checkpoint parse(const std::string& text) {
  const Json json = Json::parse(text);
  Checkpoint checkpoint;
  for (const Json& entry : json.at("Data").at("PodDeviceEntries")) {
    PodDevices& pod = checkpoint.pods.emplace_back(PodDevices{
        entry.at("PodUID"), entry.at("ContainerName"), entry.at("ResourceName"), {}, decode(entry.at("AllocResp"))});
    for (const auto& [node, ids] : entry.at("DeviceIDs").items()) {
      pod.ids[std::stol(node)] = ids;
    }
  }
  for (const auto& [resource, ids] : json.at("Data").at("RegisteredDevices").items()) {
    checkpoint.registered[resource] = ids;
  }
  if (hf::kube::fnv1a(dump(checkpoint)) != json.at("Checksum")) {
    throw std::runtime_error("its checksum is wrong");
  }
  return checkpoint;
}
