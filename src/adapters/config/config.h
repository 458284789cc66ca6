// Config: /etc/holdfast/config.yaml, and the drop-in files of /etc/holdfast/config.d applied on top of it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/trust.h"
#include "core/container/guard/policy.h"
#include "core/cpu/options.h"
#include "core/device/device_class.h"
#include "core/resource/policy.h"
#include "kernel/files/host.h"

namespace hf::config {

inline constexpr const char* kFile = "/etc/holdfast/config.yaml";
inline constexpr const char* kDropIns = "/etc/holdfast/config.d";  // *.yaml, in the order of their names

// Where the daemon listens; "" disables a listener.
struct WebSettings {
  std::string listen = "127.0.0.1:9465";
  std::string socket = "/run/holdfast/holdfastd.sock";
  bool shows_details = false;  // over TCP as well: the command lines of writers, which may hold secrets

  friend bool operator==(const WebSettings&, const WebSettings&) = default;
};

struct JournalSettings {
  std::string directory = "/var/lib/holdfast";
  std::uint64_t size = std::uint64_t(16) << 20U;  // bytes kept in total

  friend bool operator==(const JournalSettings&, const JournalSettings&) = default;
};

// Which containers may request GPUs in their environment. allocated: a pod what kubelet allocated, others anything.
enum class Trust : std::uint8_t { never, privileged, allocated, always };

// Settings of holdfast-runtime.
struct RuntimeSettings {
  std::vector<std::string> programs = {"runc", "crun"};  // runtimes it executes: the first that exists; names or paths
  bool reads_annotations = true;                         // cdi.k8s.io/…
  bool reads_mounts = true;                              // of /dev/null below /var/run/nvidia-container-devices
  Trust environment = Trust::allocated;                  // NVIDIA_VISIBLE_DEVICES
  bool creates_nodes = true;                             // loads modules and creates missing device nodes on the host
  std::string driver_root = {};                          // root directory of NVIDIA's driver; "" for the host's root
  std::string log = {};                                  // a file with a line for each decision; "": none
};

// A CDI spec that the daemon keeps in step with the host; "" for none.
struct CdiSettings {
  std::string file;
  std::string device_class = "nvidia";
  std::string hook = {};  // the path of holdfast-runtime in specs; "": where the program that writes them expects it
};

// Dynamic Resource Allocation: the devices as ResourceSlices, given to containers by resource claims.
struct DraSettings {
  bool is_enabled = false;
  std::string driver = "gpu.holdfast.dev";
  std::string directory = "/var/lib/kubelet/plugins";  // the driver's own directory is below it

  friend bool operator==(const DraSettings&, const DraSettings&) = default;
};

// The API server of the cluster. automatic: where this pod has a service account, or a kubeconfig is named.
enum class ApiUse : std::uint8_t { automatic, on, off };
struct ApiSettings {
  ApiUse use = ApiUse::automatic;
  std::string kubeconfig;        // "": the service account of this pod
  std::string node;              // this host's name in the cluster; "": $NODE_NAME, or the host name
  bool writes_events = true;     // about pods
  bool writes_condition = true;  // DeviceAccess of the cluster node
  bool writes_taint = false;     // while the condition is False
  std::uint32_t spread = 120;    // seconds over which the hosts of a cluster spread what is no warning

  friend bool operator==(const ApiSettings&, const ApiSettings&) = default;
};

// Settings of holdfast-kube.
struct KubeSettings {
  std::string root_dir = "/var/lib/kubelet";  // kubelet's --root-dir: its records of what pods were given
  ApiSettings api;
  resource::Policy policy;
  bool serves_device_plugin = true;
  DraSettings dra;
  std::string nvidia_config;  // a config file of NVIDIA's device plugin, "" for none
  std::string directory = "/var/lib/kubelet/device-plugins";
  bool uses_registry = false;  // kubelet finds the plugin in plugins_registry, instead of being told
  std::string registry = "/var/lib/kubelet/plugins_registry";
  std::string features;        // a file of labels for node-feature-discovery; "" for none
  bool watches_errors = true;  // that NVML reports
  std::set<unsigned> ignored_xids = {13, 31, 43, 45, 68, 109};  // errors of programs, not of GPUs
};

// The CPU manager of holdfastd.
struct CpuSettings {
  bool manages = false;
  cpu::CpuSet reserved;  // for the system; empty: `reserved_count` of them
  std::uint32_t reserved_count = 1;
  cpu::Options options;
  std::optional<std::uint32_t> most;  // that a container outside pods may ask for
  bool moves_memory = false;          // cpuset.mems: the NUMA nodes of the exclusive CPUs
  bool moves_irqs = false;            // interrupts are kept away from exclusive CPUs

  friend bool operator==(const CpuSettings&, const CpuSettings&) = default;
};

// The engine's Node Resource Interface.
struct NriSettings {
  bool is_enabled = false;
  std::string socket = "/var/run/nri/nri.sock";
  std::string index = "95";  // its place among the plugins: after others, to see which CPUs they give

  friend bool operator==(const NriSettings&, const NriSettings&) = default;
};

struct Config {
  device::DeviceClasses classes;         // the file's own first, then the built-in ones it does not replace
  std::vector<std::string> state_roots;  // more state directories of runc or crun (--root)
  container::Policy policy;
  WebSettings web;
  JournalSettings journal;
  std::vector<container::TrustRule> trust;  // pods whose own requests for devices count
  RuntimeSettings runtime;
  CdiSettings cdi;
  KubeSettings kube;
  CpuSettings cpus;
  NriSettings nri;
  std::vector<std::string> files;  // that were read

  [[nodiscard]] bool manages_cpus() const { return cpus.manages || nri.is_enabled; }
};

// One file, or several that are applied one after the other: of classes with the same name and of single values the
// last one counts; the policy rules of the last file are evaluated first; lists of paths are joined.
Result<Config> parse_config(std::string_view text);
struct ConfigFile {
  std::string name;
  std::string text;
};
Result<Config> parse_config(const std::vector<ConfigFile>& files);
Result<Config> read_config(const kernel::Host& host);                           // the defaults where there is no file
Result<Config> read_config(const kernel::Host& host, const std::string& file);  // that one file instead; it must exist

}  // namespace hf::config
