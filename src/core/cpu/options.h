// Options: how the static policy assigns cores: kubelet's cpuManagerPolicyOptions and one of our own.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/cpu/topology.h"

namespace hf::cpu {

struct Options {
  bool full_cores = false;          // full-pcpus-only: a core is never split between containers
  bool across_numa = false;         // distribute-cpus-across-numa
  bool by_socket = false;           // align-by-socket: a hint stands for all sockets of its nodes
  bool across_cores = false;        // distribute-cpus-across-cores
  bool strict_reservation = false;  // strict-cpu-reservation: no container runs on reserved CPUs
  bool by_cache = false;            // prefer-align-cpus-by-uncorecache
  bool near_devices = false;        // prefer-device-numa, ours: the NUMA nodes of the container's devices first

  friend bool operator==(const Options&, const Options&) = default;
};

// Refuses, with kubelet's messages, unknown options, values that are not boolean, and options that exclude each other.
Result<Options> parse_options(const std::map<std::string, std::string>& values);
Result<void> check_option_name(std::string_view name);  // its error has a suggestion as well
Result<bool> parse_bool(std::string_view text);         // Go's ParseBool: 1, t, T, TRUE, true, True, 0, f, …
Result<void> check_options(const Options& options, const Topology& topology);
std::map<std::string, bool> option_values(const Options& options);

}  // namespace hf::cpu
