// Config: /etc/holdfast/config.yaml, and the files of /etc/holdfast/config.d laid over it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/policy.h"
#include "core/device/device_class.h"
#include "kernel/host.h"

namespace hf::config {

inline constexpr const char* kFile = "/etc/holdfast/config.yaml";
inline constexpr const char* kDropIns = "/etc/holdfast/config.d";  // *.yaml, in the order of their names

// Where the daemon listens: "" for nowhere.
struct WebSettings {
  std::string listen = "127.0.0.1:9465";
  std::string socket = "/run/holdfast/holdfastd.sock";
  bool shows_details = false;  // over TCP as well: the command lines of writers, which may hold secrets
};

struct JournalSettings {
  std::string folder = "/var/lib/holdfast";
  std::uint64_t size = std::uint64_t(16) << 20U;  // bytes that are kept in all
};

// Whose environment may ask for GPUs. allocated: in a pod for what kubelet allocated, elsewhere for anything.
enum class Trust : std::uint8_t { never, privileged, allocated, always };

// What holdfast-runtime does.
struct RuntimeSettings {
  std::vector<std::string> programs = {"runc", "crun"};  // what it becomes: the first that is there; names or paths
  bool hears_annotations = true;                         // cdi.k8s.io/…
  bool hears_mounts = true;                              // of /dev/null below /var/run/nvidia-container-devices
  Trust environment = Trust::allocated;                  // NVIDIA_VISIBLE_DEVICES
  bool makes_nodes = true;                               // loads modules and makes nodes of the host that are missing
  std::string driver_root = {};                          // where NVIDIA's driver lies; "" for the host's own root
};

// A CDI spec that the daemon keeps as the node is; "" for none.
struct CdiSettings {
  std::string file;
  std::string device_class = "nvidia";
};

struct Config {
  device::DeviceClasses classes;         // the file's own first, then the built-in ones it does not replace
  std::vector<std::string> state_roots;  // where runc or crun was told to keep its state (--root)
  container::Policy policy;
  WebSettings web;
  JournalSettings journal;
  RuntimeSettings runtime;
  CdiSettings cdi;
  std::vector<std::string> files;  // that were read
};

// One file, or several laid over each other: of classes with the same name, of words and numbers the last counts; of
// policy rules those of the last file are asked first; lists of paths add up.
Result<Config> parse_config(std::string_view text);
struct ConfigFile {
  std::string name;
  std::string text;
};
Result<Config> parse_config(const std::vector<ConfigFile>& files);
Result<Config> read_config(const kernel::Host& host);                           // the defaults where there is no file
Result<Config> read_config(const kernel::Host& host, const std::string& file);  // that one file instead; it must exist

}  // namespace hf::config
