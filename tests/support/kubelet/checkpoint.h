// PodDevices: what kubelet remembers of a pod's devices, and the file in which it does, kubelet_internal_checkpoint.
#pragma once

#include <map>
#include <string>
#include <vector>

struct PodDevices {
  std::string uid;
  std::string container;
  std::string resource;
  std::map<long, std::vector<std::string>> ids;  // by NUMA node; -1: of none
  std::string response;                          // of Allocate, for this container
};

struct Checkpoint {
  std::vector<PodDevices> pods;
  std::map<std::string, std::vector<std::string>> registered;
};

std::string render(const Checkpoint& checkpoint);
Checkpoint parse(const std::string& text);  // throws if it is none, or if its checksum is wrong
