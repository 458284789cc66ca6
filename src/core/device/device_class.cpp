#include "core/device/device_class.h"

#include <algorithm>
#include <iterator>

#include <fnmatch.h>

#include "core/base/suggest.h"
#include "core/base/text.h"

namespace hf::device {
namespace {

constexpr std::uint32_t kNvidiaMajor = 195;  // Kernel: Documentation/admin-guide/devices.txt; others are dynamic

// The name is nvidia-frontend before driver 550.40.
Numbering of_nvidia(std::optional<std::uint32_t> minor) { return {{"nvidia", "nvidia-frontend"}, kNvidiaMajor, minor}; }
Numbering named(const std::string& driver, std::optional<std::uint32_t> minor) { return {{driver}, {}, minor}; }

DeviceClass nvidia() {
  return {
      "nvidia",
      "NVIDIA GPU",
      {{"/dev/nvidia[0-9]*", Part::unit, of_nvidia(std::nullopt)},
       {"/dev/nvidiactl", Part::control, of_nvidia(255)},
       {"/dev/nvidia-uvm", Part::control, named("nvidia-uvm", 0)},
       {"/dev/nvidia-uvm-tools", Part::helper, named("nvidia-uvm", 1)},
       {"/dev/nvidia-modeset", Part::extra, of_nvidia(254)},
       {"/dev/nvidia-caps/nvidia-cap[0-9]*", Part::extra, named("nvidia-caps", std::nullopt)},
       {"/dev/nvidia-caps-imex-channels/channel[0-9]*", Part::extra, named("nvidia-caps-imex-channels", std::nullopt)},
       {"/dev/nvidia-nvswitchctl", Part::extra, std::nullopt},
       {"/dev/nvidia-nvswitch[0-9]*", Part::extra, std::nullopt},
       {"/dev/nvidia-nvlink", Part::extra, std::nullopt},
       {"/dev/nvidia-fs*", Part::extra, std::nullopt},
       {"/dev/gdrdrv", Part::extra, named("gdrdrv", 0)},
       {"/dev/dri/renderD[0-9]*", Part::extra, std::nullopt},
       {"/dev/dri/card[0-9]*", Part::extra, std::nullopt}},
      {"0x10de"}};
}

DeviceClasses make_classes() {
  DeviceClasses classes;
  classes.push_back(nvidia());
  classes.push_back({"amd",
                     "AMD GPU",
                     {{"/dev/kfd", Part::control, {}, false},  // compute needs it, video does not
                      {"/dev/dri/renderD[0-9]*", Part::unit, {}},
                      {"/dev/dri/card[0-9]*", Part::extra, {}}},
                     {"0x1002"}});
  classes.push_back({"dri",
                     "DRI device",
                     {{"/dev/dri/renderD[0-9]*", Part::unit, {}}, {"/dev/dri/card[0-9]*", Part::extra, {}}},
                     {}});
  classes.push_back({"rdma",
                     "RDMA device",
                     {{"/dev/infiniband/uverbs[0-9]*", Part::unit, {}},
                      {"/dev/infiniband/rdma_cm", Part::control, {}},
                      {"/dev/infiniband/umad[0-9]*", Part::extra, {}},
                      {"/dev/infiniband/issm[0-9]*", Part::extra, {}}},
                     {}});
  classes.push_back({"ascend",
                     "Ascend NPU",
                     {{"/dev/davinci[0-9]*", Part::unit, {}},
                      {"/dev/davinci_manager", Part::control, {}},
                      {"/dev/devmm_svm", Part::control, {}},
                      {"/dev/hisi_hdc", Part::control, {}}},
                     {}});
  classes.push_back({"wsl", "WSL GPU", {{"/dev/dxg", Part::unit, {}}}, {}});
  classes.push_back({"fuse", "FUSE", {{"/dev/fuse", Part::unit, {}}}, {}});
  classes.push_back({"kvm", "KVM", {{"/dev/kvm", Part::unit, {}}}, {}});
  return classes;
}

std::optional<std::uint32_t> number_at_end(const std::string& path) {
  const std::size_t before_digits = path.find_last_not_of("0123456789");
  return parse_number<std::uint32_t>(
      std::string_view(path).substr(before_digits == std::string::npos ? 0 : before_digits + 1));
}

// A glob that ends in a number matches only a number: "/dev/nvidia[0-9]*" does not match "/dev/nvidia0.old".
bool matches(const NodePattern& pattern, const std::string& path) {
  constexpr std::string_view kNumber = "[0-9]*";
  if (::fnmatch(pattern.glob.c_str(), path.c_str(), FNM_PATHNAME) != 0) {
    return false;
  }
  if (!pattern.glob.ends_with(kNumber)) {
    return true;
  }
  const std::size_t start = pattern.glob.size() - kNumber.size();
  const bool plain = pattern.glob.find_first_of("*?[") == start;
  return !plain || path.find_first_not_of("0123456789", start) == std::string::npos;
}

bool is_dri(const std::string& path) { return path.starts_with("/dev/dri/"); }

}  // namespace

std::string to_string(Part part) {
  switch (part) {
    case Part::unit: return "unit";
    case Part::control: return "control";
    case Part::helper: return "helper";
    case Part::extra: return "extra";
  }
  return "";
}

const DeviceClasses& built_in_classes() {
  static const DeviceClasses classes = make_classes();
  return classes;
}

std::optional<NodeRole> role_of(const DeviceClasses& classes, const std::string& path, std::string_view vendor) {
  for (const DeviceClass& entry : classes) {
    const bool of_vendor = std::ranges::find(entry.vendors, vendor) != entry.vendors.end();
    if (is_dri(path) && !entry.vendors.empty() && !of_vendor) {
      continue;
    }
    for (const NodePattern& pattern : entry.nodes) {
      if (matches(pattern, path)) {
        return NodeRole{&entry, &pattern};
      }
    }
  }
  return std::nullopt;
}

const DeviceClass* find_class(const DeviceClasses& classes, std::string_view name) {
  const auto found = std::ranges::find(classes, name, &DeviceClass::name);
  return found == classes.end() ? nullptr : &*found;
}

Result<void> check_class(const DeviceClasses& classes, std::string_view name) {
  if (find_class(classes, name) != nullptr) {
    return {};
  }
  std::vector<std::string> names;
  std::ranges::transform(classes, std::back_inserter(names), &DeviceClass::name);
  return fail(std::errc::invalid_argument, "no device class " + quote(name) + suggest(name, names));
}

std::optional<Device> numbers_of(const NodePattern& pattern, const std::string& path, const DriverNames& drivers) {
  if (!pattern.numbering) {
    return std::nullopt;
  }
  const std::optional<std::uint32_t> minor = pattern.numbering->minor ? pattern.numbering->minor : number_at_end(path);
  for (const std::string& name : pattern.numbering->drivers) {
    const auto driver = drivers.character.find(name);
    if (driver != drivers.character.end() && minor) {
      return Device{Kind::character, driver->second, *minor};
    }
  }
  if (pattern.numbering->major && minor) {
    return Device{Kind::character, *pattern.numbering->major, *minor};
  }
  return std::nullopt;
}

std::string driver_with(const DriverNames& drivers, Kind kind, std::uint32_t major) {
  std::vector<std::string> names;
  for (const auto& [name, number] : kind == Kind::block ? drivers.block : drivers.character) {
    if (number == major) {
      names.push_back(name);
    }
  }
  return join(names, ", ");
}

}  // namespace hf::device
