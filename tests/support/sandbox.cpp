#include "support/sandbox.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/device/systemd_rules.h"

namespace hf::test {
namespace {

mode_t mode_of(device::Kind kind) { return kind == device::Kind::block ? S_IFBLK : S_IFCHR; }

bool join(const std::string& directory) {
  const int file = ::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  const bool joined = file >= 0 && ::write(file, "0", 1) == 1;
  ::close(file);
  return joined;
}

std::string unique_name() {
  static std::atomic<int> count = 0;
  return "hf-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

// The verdict of the kernel: 0 denied, 1 allowed, 2 neither (then the test must fail).
char ask_one(const device::Request& request, const std::string& node, bool can_open) {
  const auto wants = [&](device::Access access) { return contains(request.access, access); };
  if (wants(device::Access::mknod)) {
    const std::string created = node + "-" + std::to_string(::getpid());
    const dev_t numbers = makedev(request.device.major, request.device.minor);
    const bool allowed = ::mknod(created.c_str(), mode_of(request.device.kind) | 0600, numbers) == 0;
    const int number = errno;
    ::unlink(created.c_str());
    return allowed ? 1 : number == EPERM ? 0 : 2;
  }
  const bool reads = wants(device::Access::read);
  const bool writes = wants(device::Access::write);
  const bool allowed = ::access(node.c_str(), (reads ? R_OK : 0) | (writes ? W_OK : 0)) == 0;
  if (!allowed && errno != EPERM) {
    return 2;
  }
  if (can_open) {
    const int flags = reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY;
    const int file = ::open(node.c_str(), flags | O_NONBLOCK | O_CLOEXEC);
    const bool opened = file >= 0 || errno != EPERM;  // ENXIO: allowed, but no driver has the device
    ::close(file);
    return opened == allowed ? char(allowed) : char(2);
  }
  return char(allowed);
}

std::set<std::uint32_t> used_majors() {
  std::ifstream file("/proc/devices");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const device::DriverNames names = device::parse_driver_names(text);
  std::set<std::uint32_t> majors;
  for (const auto& [name, major] : names.character) {
    majors.insert(major);
  }
  for (const auto& [name, major] : names.block) {
    majors.insert(major);
  }
  return majors;
}

}  // namespace

std::optional<std::string> why_no_kernel_tests(Needs needs) {
  if (::geteuid() != 0) {
    return "needs root";
  }
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return host.error().message;
  }
  if (!host->v2 || (needs == Needs::both && !host->v1)) {
    return std::string("needs cgroup v2") + (needs == Needs::both ? " and cgroup v1 devices" : "") + " mounted, has " +
           kernel::layout_of(*host);
  }
  return std::nullopt;
}

ScratchCgroup::ScratchCgroup(const kernel::Host& host, container::Hierarchy hierarchy, const std::string& below)
    : host_(host), directory_((below.empty() ? host.mount_of(hierarchy)->point : below) + "/" + unique_name()) {
  if (::mkdir(directory_.c_str(), 0755) < 0) {
    throw std::runtime_error("mkdir " + directory_ + ": " + std::strerror(errno));
  }
}

ScratchCgroup::~ScratchCgroup() {
  // A process that has just exited may still count for a moment.
  for (int tries = 0; tries < 500 && ::rmdir(directory_.c_str()) < 0 && errno == EBUSY; ++tries) {
    ::usleep(10'000);
  }
}

kernel::CgroupsOfProcess ScratchCgroup::open() const {
  Result<kernel::CgroupsOfProcess> opened = kernel::open_cgroups_at(host_, directory_);
  if (!opened) {
    throw std::runtime_error(opened.error().message);
  }
  return *std::move(opened);
}

kernel::Cgroup ScratchCgroup::cgroup() const {
  kernel::CgroupsOfProcess opened = open();
  return opened.v1 ? *std::move(opened.v1) : *std::move(opened.v2);
}

void ScratchCgroup::write(const std::string& file, const std::string& text) const {
  const int opened = ::open((directory_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = opened >= 0 && ::write(opened, text.data(), text.size()) == ssize_t(text.size());
  const int number = errno;
  ::close(opened);
  if (!written) {
    throw std::runtime_error("write '" + text + "' to " + directory_ + "/" + file + ": " + std::strerror(number));
  }
}

// In /dev, which is in memory everywhere: ext4 takes ten times as long to make nodes.
NodeDirectory::NodeDirectory() : path_("/dev/hf-test-nodes-XXXXXX") {
  if (::mkdtemp(path_.data()) != nullptr) {
    return;
  }
  path_ = "/tmp/hf-test-nodes-XXXXXX";  // without root
  if (::mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
}

NodeDirectory::~NodeDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string NodeDirectory::node(const device::Device& device) {
  std::string name = path_ + "/" + device::kind_character(device.kind) + std::to_string(device.major) + "-" +
                     std::to_string(device.minor);
  const dev_t numbers = makedev(device.major, device.minor);
  if (::mknod(name.c_str(), mode_of(device.kind) | 0666, numbers) < 0 && errno != EEXIST) {
    throw std::runtime_error("mknod " + name + ": " + std::strerror(errno));
  }
  return name;
}

int run_in(const std::vector<const ScratchCgroup*>& cgroups, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const ScratchCgroup* cgroup : cgroups) {
      if (!join(cgroup->directory())) {
        ::_exit(255);
      }
    }
    ::_exit(body());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 255) {
    throw std::runtime_error("a process in the scratch cgroup failed");
  }
  return WEXITSTATUS(status);
}

std::vector<bool> ask_kernel(const std::vector<const ScratchCgroup*>& cgroups,
                             const std::vector<device::Request>& requests, NodeDirectory& nodes) {
  static const std::set<std::uint32_t> used = used_majors();
  std::vector<std::string> names;
  for (const device::Request& request : requests) {
    names.push_back(nodes.node(request.device));
  }
  void* memory = ::mmap(nullptr, requests.size() + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char* answers = static_cast<char*>(memory);
  run_in(cgroups, [&] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      answers[i] = ask_one(requests[i], names[i], !used.contains(requests[i].device.major));
    }
    return 0;
  });
  std::vector<bool> allowed;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (answers[i] == 2) {
      ::munmap(memory, requests.size() + 1);
      throw std::runtime_error("the kernel gave no clear answer about " + to_string(requests[i]));
    }
    allowed.push_back(answers[i] == 1);
  }
  ::munmap(memory, requests.size() + 1);
  return allowed;
}

std::vector<std::uint32_t> unused_majors(std::size_t count) {
  const std::set<std::uint32_t> used = used_majors();
  std::vector<std::uint32_t> majors;
  for (std::uint32_t major = 60; majors.size() < count && major <= device::kLastMajor; ++major) {
    if (!used.contains(major)) {
      majors.push_back(major);
    }
  }
  return majors;
}

}  // namespace hf::test
