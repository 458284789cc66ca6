// Target: finds the containers that are given on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "host/census.h"
#include "kernel/files/host.h"

namespace hf::host {

// Whether the name of a pod means all of its containers, or is ambiguous where it has several.
enum class PodNames : std::uint8_t { ambiguous, all_containers };

// Targets are names, ids, "container:NAME", or "pid:N" of any process in a container. A target that matches none is an
// error, and so is one that matches several, which are listed.
Result<std::vector<const DiscoveredContainer*>> find_discovered(const kernel::Host& host, const Census& census,
                                                                const std::vector<std::string>& targets,
                                                                PodNames pods = PodNames::ambiguous);

// "no container 'trian'; did you mean train?", or with the containers that run.
std::string no_such_container(const std::vector<container::Container>& all, const std::string& target);

}  // namespace hf::host
