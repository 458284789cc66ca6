// Sandbox: cgroups, nodes and processes on the real kernel that go away with the test, also when it fails.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "kernel/cgroup.h"
#include "kernel/host.h"

namespace hf::test {

// Why tests on the real kernel cannot run here; nullopt where they can.
std::optional<std::string> why_no_kernel_tests();

// A cgroup of its own, made in a hierarchy and removed again.
class ScratchCgroup {
 public:
  ScratchCgroup(const kernel::Host& host, container::Hierarchy hierarchy, const std::string& below = "");
  ScratchCgroup(const ScratchCgroup&) = delete;
  ScratchCgroup& operator=(const ScratchCgroup&) = delete;
  ~ScratchCgroup();

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] kernel::CgroupsOfProcess open() const;  // as a target
  [[nodiscard]] kernel::Cgroup cgroup() const;
  void write(const std::string& file, const std::string& text) const;  // throws where the kernel refuses

 private:
  const kernel::Host& host_;
  std::string directory_;
};

// Nodes for requests, each made when first asked for.
class NodeFolder {
 public:
  NodeFolder();
  NodeFolder(const NodeFolder&) = delete;
  NodeFolder& operator=(const NodeFolder&) = delete;
  ~NodeFolder();

  std::string node(const device::Device& device);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a function in a child process that has joined the cgroups; its return value is the exit code. Throws if it
// cannot join.
int run_in(const std::vector<const ScratchCgroup*>& cgroups, const std::function<int()>& body);

// Asks the kernel about each request from inside the cgroups. `real_open`: also with open(2), where no driver is
// behind.
std::vector<bool> ask_kernel(const std::vector<const ScratchCgroup*>& cgroups,
                             const std::vector<device::Request>& requests, NodeFolder& nodes);

// Majors that no driver of this machine has, so that open(2) has no effect but its errno.
std::vector<std::uint32_t> unused_majors(std::size_t count);

}  // namespace hf::test
