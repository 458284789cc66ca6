#include "adapters/nvidia/file_table.h"

#include <algorithm>
#include <array>
#include <string>

namespace hf::nvidia {
namespace {

// 64-bit and 32-bit directories together: /usr/lib is 64-bit on one distribution and 32-bit on another, so the ELF
// header of the library decides.
constexpr std::array<std::string_view, 22> kLibraryDirectories = {"/usr/lib/x86_64-linux-gnu",
                                                                  "/usr/lib/x86_64-linux-gnu/nvidia/current",
                                                                  "/usr/lib/aarch64-linux-gnu",
                                                                  "/usr/lib/aarch64-linux-gnu/nvidia/current",
                                                                  "/usr/lib64",
                                                                  "/usr/lib64/nvidia",
                                                                  "/usr/lib",
                                                                  "/usr/lib/nvidia",
                                                                  "/lib64",
                                                                  "/lib/x86_64-linux-gnu",
                                                                  "/lib/aarch64-linux-gnu",
                                                                  "/lib",
                                                                  "/usr/local/nvidia/lib64",
                                                                  "/usr/local/nvidia/lib",
                                                                  "/usr/local/lib64",
                                                                  "/usr/local/lib",
                                                                  "/home/kubernetes/bin/nvidia/lib64",
                                                                  "/run/opengl-driver/lib",
                                                                  "/usr/lib/i386-linux-gnu",
                                                                  "/usr/lib/i386-linux-gnu/nvidia/current",
                                                                  "/usr/lib32",
                                                                  "/run/opengl-driver-32/lib"};

// Prefixes of library names. libnvidia-gpucomp is needed for compute and for graphics, so it is not listed: every
// container gets it.
constexpr std::array<KnownFile, 39> kLibraries = {{{"libnvidia-ml", "utility"},
                                                   {"libnvidia-cfg", "utility"},
                                                   {"libnvidia-nscq", "utility"},
                                                   {"libnvidia-sandboxutils", "utility"},
                                                   {"libcuda", "compute"},
                                                   {"libcudadebugger", "compute"},
                                                   {"libnvidia-opencl", "compute"},
                                                   {"libnvidia-ptxjitcompiler", "compute"},
                                                   {"libnvidia-fatbinaryloader", "compute"},
                                                   {"libnvidia-allocator", "compute"},
                                                   {"libnvidia-compiler", "compute"},
                                                   {"libnvidia-nvvm", "compute"},
                                                   {"libnvidia-pkcs11", "compute"},
                                                   {"libnvidia-tileiras", "compute"},
                                                   {"libvdpau_nvidia", "video"},
                                                   {"libnvidia-encode", "video"},
                                                   {"libnvidia-opticalflow", "video"},
                                                   {"libnvcuvid", "video"},
                                                   {"libGLX_nvidia", "graphics"},
                                                   {"libEGL_nvidia", "graphics"},
                                                   {"libGLESv1_CM_nvidia", "graphics"},
                                                   {"libGLESv2_nvidia", "graphics"},
                                                   {"libnvidia-egl", "graphics"},
                                                   {"libnvidia-glcore", "graphics"},
                                                   {"libnvidia-tls", "graphics"},
                                                   {"libnvidia-glsi", "graphics"},
                                                   {"libnvidia-fbc", "graphics"},
                                                   {"libnvidia-ifr", "graphics"},
                                                   {"libnvidia-rtcore", "graphics"},
                                                   {"libnvidia-glvkspirv", "graphics"},
                                                   {"libnvidia-cbl", "graphics"},
                                                   {"libnvidia-vksc-core", "graphics"},
                                                   {"libnvidia-present", "graphics"},
                                                   {"libnvoptix", "graphics"},
                                                   {"libnvidia-gtk", "display"},
                                                   {"libnvidia-wayland-client", "display"},
                                                   {"libnvidia-xcfg", "display"},
                                                   {"libglxserver_nvidia", "display"},
                                                   {"libnvidia-ngx", "ngx"}}};

constexpr std::array<KnownFile, 8> kBinaries = {{{"nvidia-smi", "utility"},
                                                 {"nvidia-debugdump", "utility"},
                                                 {"nvidia-persistenced", "utility"},
                                                 {"nvidia-cuda-mps-control", "compute"},
                                                 {"nvidia-cuda-mps-server", "compute"},
                                                 {"nvidia-imex", "compute"},
                                                 {"nvidia-imex-ctl", "compute"},
                                                 {"nvidia-xconfig", "display"}}};

constexpr std::array<std::string_view, 10> kBinaryDirectories = {"/usr/bin",
                                                                 "/usr/sbin",
                                                                 "/bin",
                                                                 "/sbin",
                                                                 "/usr/local/bin",
                                                                 "/usr/local/nvidia/bin",
                                                                 "/usr/lib/nvidia/current",
                                                                 "/opt/bin",
                                                                 "/home/kubernetes/bin/nvidia/bin",
                                                                 "/run/current-system/sw/bin"};

constexpr std::array<KnownFile, 17> kConfigFiles = {
    {{"glvnd/egl_vendor.d/10_nvidia.json", "graphics"},
     {"egl/egl_external_platform.d/09_nvidia_wayland2.json", "graphics"},
     {"egl/egl_external_platform.d/10_nvidia_wayland.json", "graphics"},
     {"egl/egl_external_platform.d/15_nvidia_gbm.json", "graphics"},
     {"egl/egl_external_platform.d/20_nvidia_xcb.json", "graphics"},
     {"egl/egl_external_platform.d/20_nvidia_xlib.json", "graphics"},
     {"vulkan/icd.d/nvidia_icd.json", "graphics"},
     {"vulkan/icd.d/nvidia_icd.x86_64.json", "graphics"},
     {"vulkan/icd.d/nvidia_icd.aarch64.json", "graphics"},
     {"vulkan/icd.d/nvidia_layers.json", "graphics"},
     {"vulkan/implicit_layer.d/nvidia_layers.json", "graphics"},
     {"vulkansc/icd.d/nvidia_icd_vksc.json", "graphics"},
     {"nvidia/nvoptix.bin", "graphics"},
     {"OpenCL/vendors/nvidia.icd", "compute"},
     {"X11/xorg.conf.d/10-nvidia.conf", "display"},
     {"X11/xorg.conf.d/10-nvidia-drm-outputclass.conf", "display"},
     {"X11/xorg.conf.d/nvidia-drm-outputclass.conf", "display"}}};

constexpr std::array<std::string_view, 2> kConfigDirectories = {"/etc", "/usr/share"};

constexpr std::array<std::string_view, 7> kDisplayDirectories = {"/usr/lib/xorg/modules/drivers",
                                                                 "/usr/lib/xorg/modules/extensions",
                                                                 "/usr/lib64/xorg/modules/drivers",
                                                                 "/usr/lib64/xorg/modules/extensions",
                                                                 "/usr/lib/x86_64-linux-gnu/nvidia/xorg",
                                                                 "/usr/lib/aarch64-linux-gnu/nvidia/xorg",
                                                                 "/usr/lib/nvidia/current"};

constexpr std::array<KnownLink, 6> kLinks = {
    {{"libcuda", "libcuda.so.1", ""},
     {"libcuda", "libcuda.so", "libcuda.so.1"},
     {"libnvidia-opticalflow", "libnvidia-opticalflow.so.1", ""},
     {"libnvidia-opticalflow", "libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1"},
     {"libGLX_nvidia", "libGLX_indirect.so.0", ""},
     {"libnvidia-allocator", "gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1"}}};

}  // namespace

std::span<const std::string_view> library_directories() { return kLibraryDirectories; }

std::string_view stem_of(std::string_view library) { return library.substr(0, library.find(".so")); }

bool is_driver_library(std::string_view name, std::string_view version) {
  const std::size_t dot = name.find(".so.");
  if (dot == std::string_view::npos) {
    return false;
  }
  const std::string_view suffix = name.substr(dot + 4);
  if (suffix == version) {
    return true;
  }
  // The EGL libraries have versions of their own, and libnvidia-nvvm may have that of its interface.
  const bool is_number = !suffix.empty() && suffix.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_number && (name.starts_with("libnvidia-nvvm") || name.starts_with("libnvidia-egl-"));
}

std::string_view capability_of_library(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kLibraries, [name](const KnownFile& known) { return name.starts_with(known.name); });
  return found == kLibraries.end() ? std::string_view() : found->capability;
}

std::span<const KnownFile> binaries() { return kBinaries; }
std::span<const std::string_view> binary_directories() { return kBinaryDirectories; }
std::span<const KnownFile> config_files() { return kConfigFiles; }
std::span<const std::string_view> config_directories() { return kConfigDirectories; }
std::span<const std::string_view> display_directories() { return kDisplayDirectories; }
std::span<const KnownLink> known_links() { return kLinks; }

}  // namespace hf::nvidia
