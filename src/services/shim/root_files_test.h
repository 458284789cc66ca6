// RootFilesTest: a root file system of an image, and a driver on the host.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include <gtest/gtest.h>

#include "adapters/nvidia/loader_cache.h"
#include "kernel/files/file.h"
#include "services/shim/root_files.h"
#include "support/fake_host.h"
#include "support/library_file.h"
#include "support/loader_cache.h"

namespace hf::shim {

#if defined(__aarch64__)
inline constexpr const char* kLoader = "lib/ld-linux-aarch64.so.1";
#else
inline constexpr const char* kLoader = "lib64/ld-linux-x86-64.so.2";
#endif
inline constexpr const char* kDirectory = "/usr/lib/x86_64-linux-gnu";
inline constexpr const char* kCreates = "ModifyDeviceFiles: 1\n";

class RootFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    write_on_host("driver/libcuda.so.550.54.15", test::make_library("libcuda.so.1"));
    write_on_host("driver/libnvidia-ml.so.550.54.15", test::make_library("libnvidia-ml.so.1"));
    write_on_host("driver/nvidia.icd", "libnvidia-opencl.so.1");
    std::filesystem::create_directories(root_path());
    root_ = *kernel::open_directory(AT_FDCWD, root_path());
    for (const char* name : {"libcuda.so.550.54.15", "libnvidia-ml.so.550.54.15"}) {
      input_.mounts.push_back({"/driver/" + std::string(name), std::string(kDirectory) + "/" + name});
    }
    input_.mounts.push_back({"/driver/nvidia.icd", std::string(kDirectory) + "/nvidia.icd"});
    options_.directories = {kDirectory};
    options_.links = {{"libcuda.so.1", std::string(kDirectory) + "/libcuda.so"}};
    options_.driver_version = "550.54.15";
  }

  [[nodiscard]] std::string root_path() const { return fake_.root() + "/bundle/rootfs"; }

  static void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  void write_on_host(const std::string& path, const std::string& text) const { write(fake_.root() + "/" + path, text); }
  void write_in_image(const std::string& path, const std::string& text) const { write(root_path() + "/" + path, text); }
  [[nodiscard]] std::string read_in_image(const std::string& path) const {
    return kernel::read_text(root_.get(), path).value_or("");
  }

  void write_cache(const std::vector<std::pair<std::string, std::string>>& libraries) const {
    write_in_image(kLoader, "a loader");
    write_in_image("etc/ld.so.cache", test::make_loader_cache(libraries));
  }

  RootPlan plan() { return plan_root(host_, root_.get(), options_, input_); }

  static std::string list(const std::string& bytes) {
    std::string text;
    const nvidia::LoaderCache cache = nvidia::parse_loader_cache(bytes).value_or(nvidia::LoaderCache());
    for (const nvidia::CachedLibrary& library : cache.libraries) {
      text += std::string(library.path) + " ";
    }
    return text;
  }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"proc/driver/nvidia/params", kCreates}}};
  kernel::Host host_ = fake_.open();
  kernel::Fd root_;
  nvidia::HookOptions options_;
  RootInput input_;
};

}  // namespace hf::shim
