#include "adapters/nvidia/files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/nvidia/file_table.h"
#include "support/fake_host.h"
#include "support/loader_cache.h"

namespace hf::nvidia {
namespace {

using test::FakeHost;
using test::Files;

const std::string kElf64 =
    "\x7f"
    "ELF\x02";
const std::string kElf32 =
    "\x7f"
    "ELF\x01";
constexpr const char* kModule = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n";

Files with_module(Files files) {
  files["proc/self/mountinfo"] = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  files["proc/driver/nvidia/version"] = kModule;
  return files;
}

void link_to(const FakeHost& host, const std::string& path, const std::string& target) {
  const std::filesystem::path full = host.root() + path;
  std::filesystem::create_directories(full.parent_path());
  std::filesystem::create_symlink(target, full);
}

const DriverFile* find(const DriverFiles& driver, const std::string& path) {
  const auto found = std::ranges::find(driver.files, path, &DriverFile::path);
  return found == driver.files.end() ? nullptr : &*found;
}

bool has_link(const DriverFiles& driver, const std::string& target, const std::string& path) {
  return std::ranges::any_of(driver.links,
                             [&](const DriverLink& link) { return link.target == target && link.path == path; });
}

std::vector<std::string> sources(const container::ContainerEdits& edits) {
  std::vector<std::string> paths;
  for (const container::MountEdit& mount : edits.mounts) {
    paths.push_back(mount.source);
  }
  std::ranges::sort(paths);
  return paths;
}

bool has_arguments(const std::vector<std::string>& arguments, const std::vector<std::string>& part) {
  return !std::ranges::search(arguments, part).empty();
}

DriverFiles read(const FakeHost& host, const std::string& root = {}) {
  Result<DriverFiles> driver = read_driver_files(host.open(), root);
  EXPECT_TRUE(driver) << driver.error().message;
  return driver ? *std::move(driver) : DriverFiles();
}

// The layout of a host with an H200: libraries in NVIDIA's own directory, and a wrapper script in front of nvidia-smi.
Files h200_files() {
  return with_module({{"usr/local/nvidia/lib64/libcuda.so.580.159.04", kElf64},
                      {"usr/local/nvidia/lib64/libnvidia-ml.so.580.159.04", kElf64},
                      {"usr/local/nvidia/lib64/libnvidia-nvvm.so.580.159.04", kElf64},
                      {"usr/local/nvidia/lib64/libnvidia-gpucomp.so.580.159.04", kElf64},
                      {"usr/local/nvidia/lib64/libnvidia-opticalflow.so.580.159.04", kElf64},
                      {"usr/local/nvidia/lib64/libvdpau_nvidia.so.580.159.04", kElf64},
                      {"usr/local/nvidia/lib64/libnvidia-new.so.580.159.04", kElf64},
                      {"usr/local/nvidia/bin/nvidia-smi", kElf64},
                      {"usr/bin/nvidia-smi", "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi \"$@\"\n"},
                      {"usr/lib/libother.so.1", kElf64}});
}

void link_h200(const FakeHost& host) {
  link_to(host, "/lib", "usr/lib");
  const std::string directory = "/usr/local/nvidia/lib64/";
  link_to(host, directory + "libcuda.so.1", "libcuda.so.580.159.04");
  link_to(host, directory + "libcuda.so", "libcuda.so.1");
  link_to(host, directory + "libnvidia-nvvm.so.4", "libnvidia-nvvm.so.580.159.04");
  link_to(host, directory + "libunrelated.so.1", "libcuda.so.1");
  link_to(host, "/usr/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1");
}

TEST(DriverFiles, AreFoundInNvidiasOwnDirectory) {
  const FakeHost host(h200_files());
  link_h200(host);
  const DriverFiles driver = read(host);
  EXPECT_EQ(driver.version, "580.159.04");
  EXPECT_EQ(driver.library_directories, std::vector<std::string>{"/usr/local/nvidia/lib64"});
  ASSERT_NE(find(driver, "/usr/local/nvidia/lib64/libcuda.so.580.159.04"), nullptr);
  EXPECT_EQ(find(driver, "/usr/local/nvidia/lib64/libcuda.so.580.159.04")->capability, "compute");
  EXPECT_EQ(find(driver, "/usr/local/nvidia/lib64/libnvidia-new.so.580.159.04")->capability, "");
  EXPECT_EQ(find(driver, "/usr/lib/libother.so.1"), nullptr);
  EXPECT_TRUE(has_link(driver, "libcuda.so.580.159.04", "/usr/local/nvidia/lib64/libcuda.so.1"));
  EXPECT_TRUE(has_link(driver, "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so"));
  EXPECT_TRUE(has_link(driver, "libnvidia-nvvm.so.580.159.04", "/usr/local/nvidia/lib64/libnvidia-nvvm.so.4"));
  EXPECT_TRUE(has_link(driver, "libnvidia-opticalflow.so.1", "/usr/local/nvidia/lib64/libnvidia-opticalflow.so"))
      << "created though the host has none";
  EXPECT_FALSE(has_link(driver, "libcuda.so.1", "/usr/local/nvidia/lib64/libunrelated.so.1"));
  const DriverFile* smi = find(driver, "/usr/local/nvidia/bin/nvidia-smi");
  ASSERT_NE(smi, nullptr) << "a wrapper is of no use in a container";
  EXPECT_EQ(smi->path_in_container(), "/usr/bin/nvidia-smi");
  EXPECT_EQ(find(driver, "/usr/bin/nvidia-smi"), nullptr);
}

// Debian has libraries that an alternative may replace in a subdirectory, and symlinks through /etc/alternatives.
TEST(DriverFiles, AreFoundInTheLayoutOfDebian) {
  const FakeHost host(with_module({{"usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.580.159.04", kElf64},
                                   {"usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.580.159.04", kElf64},
                                   {"usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.580.159.04", kElf64},
                                   {"usr/lib/x86_64-linux-gnu/libnvidia-egl-gbm.so.1.1.2", kElf64},
                                   {"usr/lib/x86_64-linux-gnu/libnvidia-nvvm70.so.4", kElf64},
                                   {"usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.580.159.04", kElf64},
                                   {"usr/lib/x86_64-linux-gnu/libz.so.1.3", kElf64},
                                   {"usr/lib/i386-linux-gnu/nvidia/current/libcuda.so.580.159.04", kElf32},
                                   {"usr/lib/nvidia/current/nvidia-smi", kElf64},
                                   {"usr/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin", "x"},
                                   {"usr/lib/firmware/nvidia/580.159.04/LICENSE", "x"},
                                   {"usr/share/vulkan/icd.d/nvidia_icd.json", "{}"},
                                   {"etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1"},
                                   {"usr/lib/nvidia/current/nvidia_drv.so", kElf64}}));
  link_to(host, "/lib", "usr/lib");
  link_to(host, "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1", "libcuda.so.580.159.04");
  link_to(host, "/etc/alternatives/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1");
  link_to(host, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/etc/alternatives/libcuda.so.1");
  link_to(host, "/etc/alternatives/nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
  link_to(host, "/usr/bin/nvidia-smi", "/etc/alternatives/nvidia-smi");
  const DriverFiles driver = read(host);
  EXPECT_EQ(driver.library_directories,
            (std::vector<std::string>{"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/x86_64-linux-gnu",
                                      "/usr/lib/x86_64-linux-gnu/vdpau", "/usr/lib/i386-linux-gnu/nvidia/current"}));
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.580.159.04",
        "/usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.580.159.04",
        "/usr/lib/x86_64-linux-gnu/libnvidia-egl-gbm.so.1.1.2", "/usr/lib/x86_64-linux-gnu/libnvidia-nvvm70.so.4",
        "/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.580.159.04", "/usr/share/vulkan/icd.d/nvidia_icd.json",
        "/etc/OpenCL/vendors/nvidia.icd", "/usr/lib/nvidia/current/nvidia_drv.so"}) {
    EXPECT_NE(find(driver, path), nullptr) << path;
  }
  EXPECT_EQ(find(driver, "/usr/lib/x86_64-linux-gnu/libz.so.1.3"), nullptr);
  EXPECT_EQ(find(driver, "/usr/lib/i386-linux-gnu/nvidia/current/libcuda.so.580.159.04")->kind, FileKind::library32);
  EXPECT_EQ(find(driver, "/usr/lib/nvidia/current/nvidia-smi")->path_in_container(), "/usr/bin/nvidia-smi");
  const DriverFile* firmware = find(driver, "/usr/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin");
  ASSERT_NE(firmware, nullptr);
  EXPECT_EQ(firmware->path_in_container(), "/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin");
  EXPECT_EQ(std::ranges::count(driver.files, FileKind::firmware, &DriverFile::kind), 1);
}

// Red Hat has 64-bit libraries in /usr/lib64 and 32-bit libraries in /usr/lib.
TEST(DriverFiles, AreFoundInTheLayoutOfRedHat) {
  const FakeHost host(with_module({{"usr/lib64/libcuda.so.580.159.04", kElf64},
                                   {"usr/lib64/libnvidia-ml.so.580.159.04", kElf64},
                                   {"usr/lib64/libGLX_nvidia.so.580.159.04", kElf64},
                                   {"usr/lib64/vdpau/libvdpau_nvidia.so.580.159.04", kElf64},
                                   {"usr/lib/libcuda.so.580.159.04", kElf32},
                                   {"usr/bin/nvidia-smi", kElf64},
                                   {"usr/bin/nvidia-cuda-mps-control", kElf64}}));
  link_to(host, "/lib64", "usr/lib64");
  link_to(host, "/lib", "usr/lib");
  const DriverFiles driver = read(host);
  EXPECT_EQ(driver.library_directories, (std::vector<std::string>{"/usr/lib64", "/usr/lib64/vdpau", "/usr/lib"}));
  EXPECT_EQ(find(driver, "/usr/lib/libcuda.so.580.159.04")->kind, FileKind::library32);
  EXPECT_EQ(find(driver, "/usr/lib64/libcuda.so.580.159.04")->kind, FileKind::library);
  EXPECT_TRUE(has_link(driver, "libGLX_nvidia.so.580.159.04", "/usr/lib64/libGLX_indirect.so.0"));
  EXPECT_TRUE(has_link(driver, "libcuda.so.580.159.04", "/usr/lib/libcuda.so.1"));
}

TEST(DriverFiles, AreFoundThroughTheLoaderCache) {
  const FakeHost host(
      with_module({{"opt/driver/lib/libcuda.so.580.159.04", kElf64},
                   {"etc/ld.so.cache", test::make_loader_cache({{"libcuda.so.1", "/opt/driver/lib/libcuda.so.1"}})}}));
  EXPECT_EQ(read(host).library_directories, std::vector<std::string>{"/opt/driver/lib"});
}

TEST(DriverFiles, AreFoundThroughALoaderCacheWithDotsInItsPaths) {
  const FakeHost host(with_module(
      {{"opt/driver/lib/libcuda.so.580.159.04", kElf64},
       {"opt/driver/bin/", ""},
       {"etc/ld.so.cache", test::make_loader_cache({{"libcuda.so.1", "/opt/driver/bin/../lib/libcuda.so.1"}})}}));
  EXPECT_EQ(read(host).library_directories, std::vector<std::string>{"/opt/driver/lib"});
}

TEST(DriverFiles, AreTheTargetsWhereADirectoryHasOnlySymlinks) {
  const FakeHost host(with_module({{"nix/store/abc-nvidia/lib/libcuda.so.580.159.04", kElf64}}));
  link_to(host, "/run/opengl-driver/lib/libcuda.so.580.159.04", "/nix/store/abc-nvidia/lib/libcuda.so.580.159.04");
  EXPECT_EQ(read(host).library_directories, std::vector<std::string>{"/nix/store/abc-nvidia/lib"});
}

TEST(DriverFiles, OfADriverContainerAreMountedWithoutTheDriverRoot) {
  const FakeHost host(with_module({{"run/nvidia/driver/usr/lib64/libcuda.so.580.159.04", kElf64},
                                   {"run/nvidia/driver/usr/bin/nvidia-smi", kElf64}}));
  link_to(host, "/run/nvidia/driver/lib64", "/usr/lib64");
  const DriverFiles driver = read(host, "/run/nvidia/driver");
  const container::ContainerEdits edits = edits_of(driver, {});
  EXPECT_EQ(sources(edits), (std::vector<std::string>{"/run/nvidia/driver/usr/bin/nvidia-smi",
                                                      "/run/nvidia/driver/usr/lib64/libcuda.so.580.159.04"}));
  EXPECT_EQ(edits.mounts[0].destination, "/usr/lib64/libcuda.so.580.159.04");
}

TEST(DriverFiles, HaveTheVersionOfTheLibrariesWhereTheModuleReportsNone) {
  Files files = h200_files();
  files.erase("proc/driver/nvidia/version");
  const FakeHost host(files);
  EXPECT_EQ(read(host).version, "580.159.04");
}

TEST(DriverFiles, ThatAreMissingOrOfAnotherVersionAreAnError) {
  Files files = h200_files();
  files["proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX Kernel Module  570.1.1\n";
  const Result<DriverFiles> other = read_driver_files(FakeHost(files).open());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("570.1.1"), std::string::npos) << other.error().message;
  EXPECT_NE(other.error().message.find("580.159.04"), std::string::npos) << other.error().message;
  Files none = with_module({});
  none.erase("proc/driver/nvidia/version");
  EXPECT_FALSE(read_driver_files(FakeHost(none).open()));
}

TEST(DriverFiles, AreNeverTakenFromOutsideTheRoot) {
  const FakeHost host(with_module({{"usr/lib64/libcuda.so.580.159.04", kElf64}}));
  link_to(host, "/usr/lib64/libnvidia-cfg.so.580.159.04", "/etc/passwd");
  link_to(host, "/usr/bin/nvidia-smi", "../../../../../../../../bin/sh");
  const DriverFiles driver = read(host);
  EXPECT_EQ(driver.files.size(), 1U);
}

TEST(DriverFiles, IncludeTheSocketsOfRunningDaemons) {
  const FakeHost host(with_module({{"usr/lib64/libcuda.so.580.159.04", kElf64},
                                   {"run/nvidia-persistenced/", ""},
                                   {"run/nvidia-fabricmanager/socket", "not one"},
                                   {"tmp/real/", ""}}));
  link_to(host, "/tmp/nvidia-mps", "real");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = host.root() + "/run/nvidia-persistenced/socket";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(socket);
  const DriverFiles driver = read(host);
  ASSERT_NE(find(driver, "/run/nvidia-persistenced/socket"), nullptr);
  EXPECT_EQ(std::ranges::count(driver.files, FileKind::socket, &DriverFile::kind), 1)
      << "a regular file and a symlink are no sockets";
  const container::ContainerEdits edits = edits_of(driver, {{"utility"}}, {});
  ASSERT_EQ(edits.mounts.size(), 1U);
  EXPECT_EQ(edits.mounts[0].options, (std::vector<std::string>{"nosuid", "nodev", "rbind", "rprivate", "noexec"}));
}

TEST(DriverEdits, AreThoseOfTheRequestedCapabilities) {
  const FakeHost host(h200_files());
  link_h200(host);
  const DriverFiles driver = read(host);
  const std::string directory = "/usr/local/nvidia/lib64/";
  const std::string always = directory + "libnvidia-new.so.580.159.04";
  const std::string compiler = directory + "libnvidia-gpucomp.so.580.159.04";
  EXPECT_EQ(sources(edits_of(driver, {{"utility"}})),
            (std::vector<std::string>{"/usr/local/nvidia/bin/nvidia-smi", compiler,
                                      directory + "libnvidia-ml.so.580.159.04", always}));
  EXPECT_EQ(sources(edits_of(driver, {{"video"}})),
            (std::vector<std::string>{compiler, always, directory + "libnvidia-opticalflow.so.580.159.04",
                                      directory + "libvdpau_nvidia.so.580.159.04"}));
  EXPECT_EQ(edits_of(driver, {}), edits_of(driver, {{"compute", "utility"}}));
  EXPECT_EQ(edits_of(driver, {{"all"}}).mounts.size(), driver.files.size());
  EXPECT_EQ(edits_of(driver, {{"none"}}).mounts.size(), 2U);
}

TEST(DriverEdits, OfThirtyTwoBitLibrariesNeedCompat32) {
  const FakeHost host(with_module({{"usr/lib64/libcuda.so.580.159.04", kElf64},
                                   {"usr/lib/libcuda.so.580.159.04", kElf32},
                                   {"usr/lib/libnvcuvid.so.580.159.04", kElf32}}));
  const DriverFiles driver = read(host);
  EXPECT_EQ(edits_of(driver, {{"compute"}}).mounts.size(), 1U);
  EXPECT_EQ(edits_of(driver, {{"compute", "compat32"}}).mounts.size(), 2U);
  EXPECT_EQ(edits_of(driver, {{"all"}}).mounts.size(), 3U);
}

TEST(DriverEdits, MountReadOnlyAndAddOneHook) {
  const FakeHost host(h200_files());
  link_h200(host);
  const container::ContainerEdits edits = edits_of(read(host), {{"compute", "utility"}}, {"/opt/hook"});
  EXPECT_EQ(edits.environment, (std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=void",
                                                         "NVIDIA_CTK_LIBCUDA_DIR=/usr/local/nvidia/lib64"}));
  for (const container::MountEdit& mount : edits.mounts) {
    EXPECT_EQ(mount.options, (std::vector<std::string>{"ro", "nosuid", "nodev", "rbind", "rprivate"})) << mount.source;
  }
  ASSERT_EQ(edits.hooks.size(), 1U);
  EXPECT_EQ(edits.hooks[0].stage, container::HookStage::create_container);
  EXPECT_EQ(edits.hooks[0].path, "/opt/hook");
  const std::vector<std::string>& arguments = edits.hooks[0].arguments;
  EXPECT_TRUE(has_arguments(
      arguments, {"holdfast-runtime", "hook", "create-container", "--directory", "/usr/local/nvidia/lib64"}));
  EXPECT_TRUE(has_arguments(arguments, {"--link", "libcuda.so.1::/usr/local/nvidia/lib64/libcuda.so"}));
  EXPECT_TRUE(has_arguments(arguments, {"--cuda-compat", "580.159.04", "--keep-device-files"}));
  EXPECT_FALSE(
      has_arguments(arguments, {"libnvidia-opticalflow.so.1::/usr/local/nvidia/lib64/libnvidia-opticalflow.so"}))
      << "a symlink to a library that is not mounted";
  EXPECT_TRUE(edits_of(read(host), {}, {""}).hooks.empty());
}

TEST(LibraryTable, KnowsTheCapabilityOfALibrary) {
  EXPECT_EQ(capability_of_library("libcudadebugger.so.1"), "compute");
  EXPECT_EQ(capability_of_library("libnvidia-eglcore.so.1"), "graphics");
  EXPECT_EQ(capability_of_library("libnvidia-egl-wayland.so.1.1.19"), "graphics");
  EXPECT_EQ(capability_of_library("libnvidia-pkcs11-openssl3.so.1"), "compute");
  EXPECT_EQ(capability_of_library("libsomething.so.1"), "");
  EXPECT_TRUE(is_driver_library("libx.so.1.2", "1.2"));
  EXPECT_FALSE(is_driver_library("libx.so.1.2.3", "1.2"));
  EXPECT_FALSE(is_driver_library("libx.so", "1.2"));
  EXPECT_FALSE(is_driver_library("libnvidia-egl-gbm.so.old", "1.2"));
}

}  // namespace
}  // namespace hf::nvidia
