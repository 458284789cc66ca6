// Sandbox: cgroups, device nodes and processes on the real kernel that are removed after the test, also when it fails.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/files/host.h"

namespace hf::test {

// Why tests on the real kernel cannot run here; nullopt if they can.
enum class Needs : std::uint8_t { both, v2 };  // hierarchies
std::optional<std::string> why_no_kernel_tests(Needs needs = Needs::both);

// Creates a cgroup in a hierarchy, and removes it in the end.
class ScratchCgroup {
 public:
  ScratchCgroup(const kernel::Host& host, container::Hierarchy hierarchy, const std::string& below = "");
  ScratchCgroup(const ScratchCgroup&) = delete;
  ScratchCgroup& operator=(const ScratchCgroup&) = delete;
  ~ScratchCgroup();

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] kernel::CgroupsOfProcess open() const;  // as a target
  [[nodiscard]] kernel::Cgroup cgroup() const;
  void write(const std::string& file, const std::string& text) const;  // throws if the kernel refuses

 private:
  const kernel::Host& host_;
  std::string directory_;
};

// A directory of device nodes, each created when it is first requested.
class NodeDirectory {
 public:
  NodeDirectory();
  NodeDirectory(const NodeDirectory&) = delete;
  NodeDirectory& operator=(const NodeDirectory&) = delete;
  ~NodeDirectory();

  std::string node(const device::Device& device);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a function in a child process that has joined the cgroups; its return value is the exit code. Throws if it
// cannot join.
int run_in(const std::vector<const ScratchCgroup*>& cgroups, const std::function<int()>& body);

// Asks the kernel about each request from inside the cgroups; also with open(2) where no driver has the device.
std::vector<bool> ask_kernel(const std::vector<const ScratchCgroup*>& cgroups,
                             const std::vector<device::Request>& requests, NodeDirectory& nodes);

// Majors that no driver of this host has, so that open(2) has no effect but its errno.
std::vector<std::uint32_t> unused_majors(std::size_t count);

}  // namespace hf::test
