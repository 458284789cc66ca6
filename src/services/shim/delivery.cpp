#include "services/shim/delivery.h"

#include <algorithm>
#include <array>
#include <set>

#include "adapters/cdi/cdi.h"
#include "adapters/nvidia/files.h"
#include "adapters/nvidia/request.h"
#include "adapters/nvidia/requirement.h"
#include "core/base/text.h"
#include "core/container/cgroup_name.h"
#include "host/evidence.h"
#include "host/inventory.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"
#include "kernel/process/module.h"
#include "services/shim/request.h"

namespace hf::shim {
namespace {

using config::Trust;
using container::Claim;
using container::ContainerEdits;
using container::NodeEdit;
using container::OwedNode;
using container::Source;
using container::WantedNode;
using device::Access;

constexpr const char* kOurHook = "/holdfast-runtime/nvidia-container-runtime-hook";

std::unexpected<Error> refuse(const std::string& reason) { return fail(std::errc::no_such_device, reason); }

class Planner {
 public:
  Planner(const kernel::Host& host, const config::Config& config, const DeliveryInput& input)
      : host_(host), config_(config), input_(input), request_(request_of(input.spec, config.runtime, input.starter)) {}

  Result<Delivery> plan() {
    if (!request_.asks_nvidia() && request_.cdi_names.empty() && !has_nodes_of_a_class()) {
      return Delivery();
    }
    find_pod();
    inventory_ = take_inventory();
    if (is_nvidia_trusted()) {
      TRY(load_driver());
    }
    TRY(collect_claims());
    TRY(give_nodes());
    TRY(give_driver_files());
    give_features();
    return std::move(delivery_);
  }

 private:
  [[nodiscard]] bool has_nodes_of_a_class() const {
    return std::ranges::any_of(input_.spec.nodes, [this](const oci::SpecNode& node) {
      return device::role_of(config_.classes, node.path).has_value();
    });
  }

  // An inventory of every device of the host takes longer than everything else here, and is rarely needed.
  [[nodiscard]] device::Inventory take_inventory() const {
    const bool is_nvidia_alone = request_.cdi_names.empty() && !is_in_pod() &&
                                 std::ranges::none_of(input_.spec.nodes, [this](const oci::SpecNode& node) {
                                   const std::optional<device::NodeRole> role =
                                       device::role_of(config_.classes, node.path);
                                   return role && role->device_class->name != "nvidia";
                                 });
    config::Config config = config_;
    if (is_nvidia_alone) {
      std::erase_if(config.classes, [](const device::DeviceClass& entry) { return entry.name != "nvidia"; });
    }
    return host::take_inventory(host_, config);
  }

  // Only the cgroup says whether the container is in a pod, because that decides which requests are trusted.
  void find_pod() {
    const std::string cgroup = container::cgroup_named_by(input_.spec.cgroups_path);
    const std::optional<container::ParsedCgroupName> name = container::parse_cgroup_name(cgroup);
    if (!is_of_pod(input_.spec, input_.starter)) {
      return;
    }
    host::read_allocations(host_, sources_);
    if (config_.runtime.environment == Trust::always) {
      return;
    }
    container::Pod& pod = discovered_.container.pod.emplace();
    pod.uid = name ? name->pod_uid : "";
    pod.container = kube::container_name_in(input_.spec.annotations);
  }

  [[nodiscard]] bool is_in_pod() const { return discovered_.container.pod.has_value(); }

  // Is this GPU, or any where the id is "", allocated to the container? Replicas of a GPU have the suffix "::NUMBER".
  [[nodiscard]] bool is_allocated(const std::string& id) const {
    const auto is_it = [&id](const std::string& given) {
      return id.empty() || given.substr(0, given.find("::")) == id;
    };
    return std::ranges::any_of(allocations(), [&](const kube::Allocation& allocation) {
      return allocation.resource.starts_with("nvidia.com/") && std::ranges::any_of(allocation.ids, is_it);
    });
  }

  // The allocations of this container of the pod; none if its name or its pod is unknown.
  [[nodiscard]] std::vector<kube::Allocation> allocations() const {
    const container::Pod& pod = *discovered_.container.pod;
    std::vector<kube::Allocation> found;
    if (sources_.checkpoint && !pod.uid.empty() && !pod.container.empty()) {
      std::ranges::copy_if(sources_.checkpoint->allocations, std::back_inserter(found),
                           [&pod](const kube::Allocation& allocation) {
                             return allocation.pod_uid == pod.uid && allocation.container == pod.container;
                           });
    }
    return found;
  }

  // In a pod the image's environment counts as a request only if kubelet has allocated something.
  [[nodiscard]] bool is_nvidia_trusted() const { return request_.asks_nvidia() && (!is_in_pod() || is_allocated({})); }

  // Missing modules are loaded here, if the config permits it, because the container needs them before it starts.
  Result<void> load_driver() {
    if (!has_gpu() && config_.runtime.creates_nodes) {
      (void)kernel::load_module("nvidia");
      inventory_ = take_inventory();
    }
    if (!has_gpu()) {
      return refuse(request_.nvidia_description +
                    ", but this host has no NVIDIA GPU that its driver knows: load it with "
                    "'modprobe nvidia', or see 'holdfast doctor'");
    }
    const device::Node* uvm = inventory_.find("/dev/nvidia-uvm");
    if ((uvm == nullptr || !uvm->numbers()) && config_.runtime.creates_nodes) {
      (void)kernel::load_module("nvidia-uvm");
      inventory_ = take_inventory();
    }
    return {};
  }

  [[nodiscard]] bool has_gpu() const {
    return std::ranges::any_of(inventory_.units,
                               [](const device::Unit& unit) { return unit.device_class == "nvidia"; });
  }

  Result<void> collect_claims() {
    discovered_.spec = input_.spec;
    discovered_.spec_file = input_.bundle + "/config.json";
    if (request_.asks_nvidia() && !is_hooked()) {
      // This runtime replaces NVIDIA's hook, so the environment counts as if that hook were installed.
      discovered_.spec->hooks.push_back({"prestart", kOurHook, {}});
    }
    discovered_.spec->environment["NVIDIA_VISIBLE_DEVICES"] = request_.nvidia.visible;
    sources_.nvidia.accepts_environment = true;
    sources_.nvidia.accepts_mounts = false;  // they are in the request already
    if (needs_registry()) {
      sources_.cdi = cdi::read_registry(host_);
    }
    std::vector<Claim> claims = host::claims_of(host_, discovered_, sources_, inventory_);
    TRY(collect_unknown_gpus(claims));
    TRY(collect_cdi_names(claims));
    owed_ = entitle(claims, inventory_, config_.classes);
    for (const Claim& claim : owed_.refused) {
      if (claim.source == Source::oci) {
        continue;  // the writer of the spec left a node without a rule on purpose
      }
      delivery_.notes.push_back("not given: " + join(paths_of(claim), ", ") + ": " + claim.refused);
    }
    return {};
  }

  [[nodiscard]] bool is_hooked() const {
    return std::ranges::any_of(input_.spec.hooks,
                               [](const oci::Hook& hook) { return nvidia::is_nvidia_hook(hook.path); });
  }

  [[nodiscard]] bool needs_registry() const {
    const bool by_kubelet =
        sources_.checkpoint && std::ranges::any_of(sources_.checkpoint->allocations, [](const kube::Allocation& entry) {
          return !entry.cdi_devices.empty();
        });
    return !request_.cdi_names.empty() || by_kubelet || !sources_.prepared.empty() || !unknown_gpus().empty();
  }

  [[nodiscard]] std::vector<std::string> unknown_gpus() const {
    return request_.asks_nvidia() ? nvidia::resolve(request_.nvidia, inventory_).unknown : std::vector<std::string>();
  }

  // Only NVIDIA's library knows MIG devices by their UUID, and the CDI spec that was generated with it.
  Result<void> collect_unknown_gpus(std::vector<Claim>& claims) {
    for (const std::string& gpu : unknown_gpus()) {
      if (is_in_pod() && !is_allocated(gpu)) {
        continue;
      }
      const std::optional<ContainerEdits> edits = sources_.cdi.edits_of("nvidia.com/gpu=" + gpu);
      if (!edits) {
        return refuse(request_.nvidia_description + ", but no GPU here is called " + quote(gpu) + "; there are " +
                      names_of_gpus() + " ('holdfast devices' lists them)");
      }
      add_claim(claims, "nvidia.com/gpu=" + gpu, *edits);
    }
    return {};
  }

  [[nodiscard]] std::string names_of_gpus() const {
    std::vector<std::string> names;
    for (const device::Unit& unit : inventory_.units) {
      if (unit.device_class == "nvidia" && !unit.is_excluded) {
        names.push_back(unit.uuid.empty() ? std::to_string(names.size())
                                          : std::to_string(names.size()) + " (" + unit.uuid + ")");
      }
    }
    return names.empty() ? "none" : join(names, ", ");
  }

  Result<void> collect_cdi_names(std::vector<Claim>& claims) {
    for (const std::string& name : request_.cdi_names) {
      const std::optional<ContainerEdits> edits = sources_.cdi.edits_of(name);
      if (request_.is_by_environment && !is_in_pod() && !is_nvidias(name)) {
        return refuse("NVIDIA_VISIBLE_DEVICES names the CDI device " + quote(name) +
                      ", which is not NVIDIA's: an image could have set that; use the engine's --device");
      }
      if (!edits && !is_in_pod()) {
        return refuse("CDI device " + quote(name) +
                      " is in no spec below /etc/cdi or /var/run/cdi, or in two that contradict " +
                      "each other: see 'holdfast cdi list'");
      }
      if (is_in_pod() && !is_allocated_name(name)) {
        delivery_.notes.push_back("not given: CDI device " + quote(name) +
                                  ": kubelet allocated no device of this name to this container of the pod");
        continue;
      }
      if (edits) {
        add_claim(claims, name, *edits);
        ContainerEdits rest = *edits;
        rest.nodes.clear();
        append(delivery_.change.edits, rest);
      }
    }
    return {};
  }

  // "nvidia.com/gpu=0", "management.nvidia.com/gpu=all"
  static bool is_nvidias(std::string_view name) {
    const std::string_view vendor = name.substr(0, name.find('/'));
    return vendor == "nvidia.com" || vendor.ends_with(".nvidia.com");
  }

  // Compares the exact name: a device may consist of mounts and hooks alone, so its nodes prove nothing.
  [[nodiscard]] bool is_allocated_name(const std::string& name) const {
    const std::string& uid = discovered_.container.pod->uid;
    const auto has_name = [&name](const auto& given) {
      return std::ranges::find(given.cdi_devices, name) != given.cdi_devices.end();
    };
    return std::ranges::any_of(allocations(), has_name) ||
           std::ranges::any_of(sources_.prepared, [&](const kube::PreparedClaim& claim) {
             return !uid.empty() && std::ranges::find(claim.pod_uids, uid) != claim.pod_uids.end() && has_name(claim);
           });
  }

  void add_claim(std::vector<Claim>& claims, const std::string& name, const ContainerEdits& edits) {
    Claim claim;
    claim.source = Source::cdi;
    claim.where = name;
    for (const NodeEdit& node : edits.nodes) {
      const std::optional<kernel::NodeOnHost> live = kernel::read_node(host_, node.on_host());
      const std::optional<device::Device> numbers = live ? std::optional(live->device) : node.device;
      claim.nodes.push_back({node.path, numbers, node.access});
      named_.insert(node.path);
    }
    claims.push_back(std::move(claim));
  }

  Result<void> give_nodes() {
    for (const OwedNode& node : owed_.nodes) {
      const bool is_ours = !node.device_class.empty() || named_.contains(node.path);
      if (!is_ours || node.is_rule_only) {
        continue;
      }
      if (!node.device) {
        if (node.part == device::Part::helper || node.part == device::Part::extra) {
          continue;
        }
        const std::string why = node.path + " is needed and its driver is not there" + cure_for(node);
        if (!node.is_completion || is_nvidia_trusted()) {
          return refuse(why);
        }
        delivery_.notes.push_back(why);  // the spec may name the other nodes and leave this one out on purpose
        continue;
      }
      TRY(create_on_host(node));
      delivery_.change.edits.nodes.push_back(edit_of(node));
      delivery_.given.push_back({node.path, node.device, edit_of(node).access});
    }
    return {};
  }

  static std::string cure_for(const OwedNode& node) {
    const bool is_uvm = node.path.starts_with("/dev/nvidia-uvm");
    return is_uvm                          ? ": 'modprobe nvidia-uvm', then start the container again"
           : node.device_class == "nvidia" ? ": 'modprobe nvidia', then start the container again"
                                           : ": load the driver of " + node.device_class;
  }

  [[nodiscard]] Result<void> create_on_host(const OwedNode& node) const {
    if (!config_.runtime.creates_nodes || node.device_class.empty()) {
      return {};
    }
    const device::Node* known = inventory_.find(node.path);
    if (known != nullptr && (!known->live || known->is_stale())) {
      TRY(kernel::make_node_on(host_, {node.path, *node.device, node.permissions}));
    }
    create_link_on_host(node);
    return {};
  }

  // udev creates these links for most devices, but not for NVIDIA's, and runc 1.1.3 to 1.1.6 pass no device without
  // one to systemd: the next reload would remove the access.
  void create_link_on_host(const OwedNode& node) const {
    const std::string directory = node.device->kind == device::Kind::block ? "/dev/block/" : "/dev/char/";
    const std::string link = directory + std::to_string(node.device->major) + ":" + std::to_string(node.device->minor);
    constexpr std::string_view kDev = "/dev/";
    if (node.path.starts_with(kDev) && !kernel::exists(host_.root.get(), kernel::below_root(link))) {
      (void)kernel::make_symlink_on(host_, link, "../" + node.path.substr(kDev.size()));
    }
  }

  [[nodiscard]] NodeEdit edit_of(const OwedNode& node) const {
    NodeEdit edit{.path = node.path, .device = node.device, .access = node.access};
    const device::Node* known = inventory_.find(node.path);
    if (known != nullptr && known->live) {
      edit.mode = known->mode;
      edit.uid = known->uid;
      edit.gid = known->gid;
    }
    return edit;
  }

  [[nodiscard]] bool is_given_a_gpu() const {
    return std::ranges::any_of(owed_.nodes, [](const OwedNode& node) { return node.device_class == "nvidia"; });
  }

  Result<void> give_driver_files() {
    if (!is_nvidia_trusted() || !is_given_a_gpu()) {
      return {};
    }
    const Result<nvidia::DriverFiles> read = nvidia::read_driver_files(host_, config_.runtime.driver_root);
    if (!read) {
      return refuse(request_.nvidia_description + ", but the driver's files cannot be read: " + read.error().message +
                    " (runtime.driver_root in /etc/holdfast/config.yaml says where they lie)");
    }
    const nvidia::DriverFiles& files = *read;
    TRY(check_requirements(files.version));
    std::set<std::string> capabilities;
    for (const std::string_view part : split(request_.nvidia.capabilities, ',')) {
      if (!trim(part).empty()) {
        capabilities.insert(std::string(trim(part)));
      }
    }
    ContainerEdits edits = edits_of(files, capabilities, {input_.ourselves});
    for (container::HookEdit& hook : edits.hooks) {
      if (!input_.file.empty()) {
        hook.arguments.insert(hook.arguments.end(), {"--spec", input_.file});
      }
    }
    append(delivery_.change.edits, edits);
    for (const oci::Hook& hook : input_.spec.hooks) {
      if (nvidia::is_nvidia_hook(hook.path)) {
        delivery_.change.dropped_hooks.push_back(hook.path);
      }
    }
    return {};
  }

  [[nodiscard]] Result<void> check_requirements(const std::string& driver) const {
    nvidia::HostDeviceFacts facts = {{"driver", driver}};
    const std::string cuda = nvidia::cuda_of_driver(driver);
    if (!cuda.empty()) {
      facts["cuda"] = cuda;
    }
    const std::optional<std::string> unmet = nvidia::find_unmet(input_.spec.environment, facts);
    return unmet ? refuse("the image wants " + *unmet + ", and driver " + driver + " runs CUDA " +
                          (cuda.empty() ? "of an unknown version" : cuda) +
                          ": update the driver, or set NVIDIA_DISABLE_REQUIRE=1")
                 : Result<void>();
  }

  void give_features() {
    if (!is_given_a_gpu() || is_in_pod()) {
      return;
    }
    constexpr std::array<std::array<std::string_view, 3>, 6> kNodes = {{{"gds", "/dev", "nvidia-fs"},
                                                                        {"mofed", "/dev/infiniband", "uverbs"},
                                                                        {"mofed", "/dev/infiniband", "rdma_cm"},
                                                                        {"gdrcopy", "/dev", "gdrdrv"},
                                                                        {"nvswitch", "/dev", "nvidia-nvswitchctl"},
                                                                        {"nvswitch", "/dev", "nvidia-nvswitch"}}};
    for (const auto& [feature, directory, prefix] : kNodes) {
      if (std::ranges::find(request_.features, feature) == request_.features.end()) {
        continue;
      }
      for (const std::string& name : kernel::list_names(host_.root.get(), kernel::below_root(std::string(directory)))) {
        if (name.starts_with(prefix)) {
          give_node(std::string(directory) + "/" + name);
        }
      }
    }
    if (std::ranges::find(request_.features, "gds") != request_.features.end()) {
      for (const char* path : {"/run/udev", "/etc/cufile.json"}) {
        if (kernel::exists(host_.root.get(), kernel::below_root(path))) {
          append(delivery_.change.edits,
                 {.mounts = {{path, path, "", {"ro", "nosuid", "nodev", "rbind", "rprivate"}}}});
        }
      }
    }
  }

  void give_node(const std::string& path) {
    const std::optional<kernel::NodeOnHost> live = kernel::read_node(host_, path);
    if (live) {
      const Access access = Access::read | Access::write;
      append(delivery_.change.edits, {.nodes = {{.path = path,
                                                 .device = live->device,
                                                 .access = access,
                                                 .mode = live->mode,
                                                 .uid = live->uid,
                                                 .gid = live->gid}}});
      delivery_.given.push_back({path, live->device, access});
    }
  }

  const kernel::Host& host_;
  const config::Config& config_;
  const DeliveryInput& input_;
  DeviceRequest request_;
  host::DiscoveredContainer discovered_;
  host::Sources sources_;
  device::Inventory inventory_;
  container::Entitlement owed_;
  std::set<std::string> named_;  // paths that requested CDI devices have, whatever their class
  Delivery delivery_;
};

}  // namespace

Result<Delivery> plan_delivery(const kernel::Host& host, const config::Config& config, const DeliveryInput& input) {
  return Planner(host, config, input).plan();
}

}  // namespace hf::shim
