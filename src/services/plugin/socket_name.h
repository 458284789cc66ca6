// SocketName: the file names of sockets in kubelet's directory, by which instances of one plugin know each other.
#pragma once

#include <string>
#include <string_view>

namespace hf::plugin {

// The same for all instances: "holdfast-nvidia.com_gpu-".
std::string socket_prefix(std::string_view resource);
// What follows the prefix. Several instances may run during an update; process ids are not unique between containers.
std::string random_suffix();
// Another resource may have a longer name that begins in the same way.
bool is_socket_of(std::string_view prefix, std::string_view name);

}  // namespace hf::plugin
