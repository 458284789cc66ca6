// NodeReport: what a lookup of a device node finds, without opening it. Made by system calls alone, so that a child may
// do it after a fork.
#pragma once

#include <cstdint>
#include <string>

#include "core/container/entitlement/node_state.h"

namespace hf::kernel {

struct NodeReport {
  static constexpr int kNotAsked = -1;

  int lookup_error = 0;
  std::uint32_t mode = 0;  // including the file type
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  int nodev = 0;
  int enclosed = 0;
  int access = kNotAsked;
  int open = kNotAsked;

  [[nodiscard]] bool is_device() const;
};

// Every symlink is resolved below `root`; a magic link of /proc, which leads out of it, is an error.
NodeReport look_up_node(int root, const char* path);

container::NodeView view_of(const std::string& path, const NodeReport& report);

}  // namespace hf::kernel
