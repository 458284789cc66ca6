#include <algorithm>

#include "adapters/nvidia/driver.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"
#include "services/specs/draft.h"

namespace hf::specs {
namespace {

using device::Inventory;
using device::Node;
using device::Unit;

constexpr const char* kUvm = "/dev/nvidia-uvm";
constexpr const char* kControl = "/dev/nvidiactl";

bool is_live(const Inventory& inventory, const std::string& path) {
  const Node* node = inventory.find(path);
  return node != nullptr && node->live;
}

std::unexpected<Error> refuse(const std::string& what) {
  return fail(Reason::unavailable, "generate a spec of NVIDIA's GPUs: " + what);
}

// NVIDIA's own tool silently leaves out missing nodes; then CUDA fails in every container.
Result<void> check_control(const Inventory& inventory) {
  if (!is_live(inventory, kControl)) {
    return refuse(std::string(kControl) + " is missing: no container could use a GPU; make it: nvidia-modprobe -c 0");
  }
  if (is_live(inventory, kUvm)) {
    return {};
  }
  const bool is_loaded = inventory.drivers.character.contains("nvidia-uvm");
  return refuse(std::string(kUvm) +
                (is_loaded ? " is missing though its module is loaded, and without it CUDA works in no container; make "
                             "it: nvidia-modprobe -u -c 0"
                           : " is missing, since the module nvidia-uvm is not loaded, and without it CUDA works in no "
                             "container; load it: modprobe nvidia-uvm"));
}

void add_node(container::ContainerEdits& edits, const Inventory& inventory, const std::string& path) {
  if (std::optional<container::NodeEdit> edit = node_edit(inventory, path); edit) {
    edits.nodes.push_back(*std::move(edit));
  }
}

class GpuSpec {
 public:
  GpuSpec(const kernel::Host& host, const Inventory& inventory, Incomplete incomplete)
      : host_(host), inventory_(inventory), incomplete_(incomplete) {}

  Result<void> add_gpus() {
    std::size_t index = 0;
    for (const Unit& unit : inventory_.units) {
      if (unit.device_class != "nvidia") {
        continue;
      }
      if (unit.nodes.empty() || unit.is_excluded) {
        leave_out("GPU " + unit.pci, unit.health_text);
        continue;  // NVML gives it no index
      }
      TRY(add_gpu(unit, std::to_string(index++)));
    }
    return {};
  }

  [[nodiscard]] const std::vector<Draft>& drafts() const { return drafts_; }
  [[nodiscard]] std::vector<std::string>& notes() { return notes_; }

 private:
  void leave_out(const std::string& what, const std::string& why) {
    notes_.push_back(what + " is left out: " + (why.empty() ? "it has no node" : why));
  }

  Result<void> add_gpu(const Unit& unit, const std::string& index) {
    const std::string& node = unit.nodes.front();
    if (!is_live(inventory_, node) && incomplete_ == Incomplete::left_out) {
      leave_out("GPU " + index, node + " is missing");
      return {};
    }
    if (!is_live(inventory_, node)) {
      return refuse(node + " of GPU " + index + " is missing; make it: nvidia-modprobe -c " + unit.name);
    }
    if (unit.mig_enabled) {
      add_mig(unit, index);
      return {};
    }
    if (nvidia::has_mig_instances(host_, unit)) {  // NVML may be missing, or hang
      return refuse("GPU " + index + " is cut into parts (MIG), and NVML does not say what they are called; see " +
                    "what it says: holdfast devices");
    }
    Draft draft{index, unit.uuid, {}, by_path_links(unit)};
    for (const std::string& path : unit.nodes) {
      if (is_live(inventory_, path)) {
        add_node(draft.edits, inventory_, path);
      }
    }
    drafts_.push_back(std::move(draft));
    return {};
  }

  // A GPU with MIG enabled cannot be used as a whole.
  void add_mig(const Unit& unit, const std::string& index) {
    if (unit.mig.empty()) {
      leave_out("GPU " + index, "MIG is enabled, and no part of it is made");
    }
    for (std::size_t i = 0; i < unit.mig.size(); ++i) {
      const device::MigDevice& mig = unit.mig[i];
      Draft draft{index + ":" + std::to_string(i), mig.uuid, {}, {}};
      add_node(draft.edits, inventory_, unit.nodes.front());
      for (const std::string& path : mig.nodes) {
        add_node(draft.edits, inventory_, path);
      }
      constexpr std::size_t kNodes = 3;  // of the GPU, the GPU instance and the compute instance
      if (draft.edits.nodes.size() < kNodes) {
        leave_out("MIG device " + draft.index, "the driver does not list its nodes in /proc/driver/nvidia-caps");
      } else {
        drafts_.push_back(std::move(draft));
      }
    }
  }

  // Programs identify a card by links such as "/dev/dri/by-path/pci-0000:65:00.0-card".
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> by_path_links(const Unit& unit) const {
    std::vector<std::pair<std::string, std::string>> links;
    const Result<kernel::Fd> directory = kernel::open_directory_in(host_.root.get(), "/dev/dri/by-path");
    if (!directory) {
      return links;
    }
    for (const kernel::Entry& entry :
         kernel::list_entries(directory->get(), [&unit](std::string_view name, kernel::EntryKind kind) {
           return kind == kernel::EntryKind::link && name.starts_with("pci-" + unit.pci + "-");
         })) {
      const std::string target = kernel::read_link(directory->get(), entry.name);
      const bool is_own = std::ranges::any_of(
          unit.nodes, [&target](const std::string& path) { return base_name(path) == base_name(target); });
      if (is_own) {
        links.emplace_back(target, "/dev/dri/by-path/" + entry.name);
      }
    }
    return links;
  }

  const kernel::Host& host_;
  const Inventory& inventory_;
  Incomplete incomplete_;
  std::vector<Draft> drafts_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<Generated> generate_nvidia(const kernel::Host& host, const Inventory& inventory, const Settings& settings) {
  GpuSpec gpus(host, inventory, settings.incomplete);
  const bool has_any =
      std::ranges::any_of(inventory.units, [](const Unit& unit) { return unit.device_class == "nvidia"; });
  if (!has_any) {
    return refuse("this host has none");
  }
  TRY(check_control(inventory));
  TRY(gpus.add_gpus());
  if (gpus.drafts().empty()) {
    return refuse("none of this host's can be used: " + join(gpus.notes(), "; "));
  }
  const nvidia::DriverFiles driver = TRY(nvidia::read_driver_files(host, settings.driver_root));
  Generated generated;
  generated.notes = std::move(gpus.notes());
  generated.spec.kind = (settings.vendor.empty() ? "nvidia.com" : settings.vendor) + "/gpu";
  generated.spec.all = nvidia::edits_of(driver, {{"all"}}, settings.hook);
  for (const char* path : {kControl, kUvm, "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}) {
    if (is_live(inventory, path)) {
      add_node(generated.spec.all, inventory, path);
    }
  }
  add_devices(generated.spec, gpus.drafts(), settings);
  const std::string& hook = settings.hook.path;
  if (!hook.empty() && !kernel::exists(host.root.get(), kernel::below_root(hook))) {
    generated.notes.push_back(hook + ", the hook of this spec, is not there: until it is, no container with it starts");
  }
  return generated;
}

}  // namespace hf::specs
