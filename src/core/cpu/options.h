// Options: how the static policy gives cores, in kubelet's words (cpuManagerPolicyOptions) and one of our own.
#pragma once

#include <map>
#include <string>

#include "core/base/result.h"
#include "core/cpu/topology.h"

namespace hf::cpu {

struct Options {
  bool full_cores = false;          // full-pcpus-only: a core belongs to one container, or to nobody
  bool across_numa = false;         // distribute-cpus-across-numa
  bool by_socket = false;           // align-by-socket: a hint means the sockets of its nodes
  bool across_cores = false;        // distribute-cpus-across-cores
  bool strict_reservation = false;  // strict-cpu-reservation: nobody's containers run on reserved CPUs
  bool by_cache = false;            // prefer-align-cpus-by-uncorecache
  bool near_devices = false;        // prefer-device-numa, ours: first the nodes of the container's devices

  friend bool operator==(const Options&, const Options&) = default;
};

// Refuses, with kubelet's words, what does not exist, what is no truth value and what cannot go together.
Result<Options> parse_options(const std::map<std::string, std::string>& words);
Result<bool> parse_truth(std::string_view text);  // Go's ParseBool: 1, t, T, TRUE, true, True, 0, f, …
Result<void> check_options(const Options& options, const Topology& topology);
std::map<std::string, bool> to_words(const Options& options);

}  // namespace hf::cpu
