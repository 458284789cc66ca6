#include "host/evidence.h"

#include <algorithm>
#include <array>

#include "adapters/ledger/ledger.h"
#include "adapters/nvidia/request.h"
#include "core/base/text.h"
#include "core/device/table.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::host {
namespace {

using container::Claim;
using container::Source;
using container::WantedNode;
using device::Access;
using device::Device;
using device::Inventory;

constexpr std::string_view kDeviceMounts = "/var/run/nvidia-container-devices/";

Access access_of(const device::Table& table, const Device& device) {
  Access access = Access::none;
  for (const Access bit : {Access::read, Access::write, Access::mknod}) {
    access = access | (table.allows({device, bit}) ? bit : Access::none);
  }
  return access;
}

// /dev/null, terminals and similar devices: every container has them, and they belong to no device class.
bool is_default_device(const device::Rule& rule) {
  constexpr std::array<std::uint32_t, 3> kMajors = {1, 5, 136};
  return rule.selector.kind == device::Kind::character && rule.selector.major->is_point() &&
         std::ranges::find(kMajors, rule.selector.major->first) != kMajors.end();
}

class ClaimCollector {
 public:
  ClaimCollector(const kernel::Host& host, const DiscoveredContainer& discovered, const Sources& sources,
                 const Inventory& inventory)
      : host_(host), discovered_(discovered), sources_(sources), inventory_(inventory) {}

  std::vector<Claim> collect() {
    collect_ledger();
    if (discovered_.spec) {
      collect_spec(*discovered_.spec);
      collect_annotations(*discovered_.spec);
      collect_nvidia(*discovered_.spec);
    }
    if (discovered_.container.pod) {
      collect_kubelet(*discovered_.container.pod);
    }
    return std::move(claims_);
  }

 private:
  Claim& claim(Source source, const std::string& where) {
    Claim& made = claims_.emplace_back();
    made.source = source;
    made.where = printable(where);
    return made;
  }

  void collect_ledger() {
    const Result<std::optional<ledger::Entry>> entry = ledger::read_entry(host_, discovered_.container.id);
    if (!entry || !*entry) {
      return;  // the doctor reports a damaged entry
    }
    Claim& made =
        claim(Source::ledger, std::string(ledger::kDirectory) + "/" + discovered_.container.id.value + ".json");
    made.nodes = (*entry)->nodes;
    const container::Container& it = discovered_.container;
    const bool same_bundle = (*entry)->bundle.empty() || ((*entry)->bundle == it.bundle && discovered_.spec);
    const bool same_cgroup = (*entry)->cgroup.empty() || (*entry)->cgroup == it.cgroup;
    made.refused = !same_bundle   ? "it was written for another bundle"
                   : !same_cgroup ? "it was written for another cgroup"
                                  : "";
  }

  // A node is claimed only as far as the spec's own rules allow its device: a node without a rule grants nothing.
  void collect_spec(const oci::Spec& spec) {
    const device::Table table = meaning(spec.rules, device::OciReading::later_wins);
    const bool allows_all = table.contains(device::Table::everything());
    Claim given;
    Claim listed;
    for (const oci::SpecNode& node : spec.nodes) {
      const bool of_a_class =
          device::role_of(device::built_in_classes(), node.path).has_value() || inventory_.find(node.path) != nullptr;
      if (allows_all && !of_a_class) {
        continue;  // a privileged container has every node of the host; only devices of a class are guarded
      }
      const Access access = access_of(table, node.device);
      constexpr std::uint32_t kForAll = 0666;
      const container::Permissions permissions{node.mode.value_or(kForAll), node.uid, node.gid};
      (access == Access::none ? listed : given).nodes.push_back({node.path, node.device, access, permissions});
    }
    if (!allows_all) {
      for (const device::OciRule& rule : spec.rules) {
        if (rule.verb == device::Verb::allow && rule.rule.selector.kind && rule.rule.selector.major &&
            !is_default_device(rule.rule)) {
          given.rules.push_back(rule.rule);
        }
      }
    }
    if (!given.nodes.empty() || !given.rules.empty()) {
      Claim& made = claim(Source::oci, discovered_.spec_file);
      made.nodes = std::move(given.nodes);
      made.rules = std::move(given.rules);
    }
    if (!listed.nodes.empty()) {
      Claim& made = claim(Source::oci, discovered_.spec_file);
      made.nodes = std::move(listed.nodes);
      made.refused = "the spec lists the node, but no rule in it allows the device";
    }
  }

  [[nodiscard]] std::vector<WantedNode> nodes_of_cdi(const std::string& name) const {
    std::vector<WantedNode> nodes;
    const std::optional<container::ContainerEdits> edits = sources_.cdi.edits_of(name);
    for (const container::NodeEdit& node : edits ? edits->nodes : std::vector<container::NodeEdit>()) {
      const std::optional<kernel::NodeOnHost> live = kernel::read_node(host_, node.on_host());
      const std::optional<Device> on_host = live ? std::optional(live->device) : std::nullopt;
      nodes.push_back({node.path, node.device ? node.device : on_host, node.access});
    }
    return nodes;
  }

  void collect_annotations(const oci::Spec& spec) {
    for (const std::string& name : kube::cdi_names_in(spec.annotations)) {
      std::vector<WantedNode> nodes = nodes_of_cdi(name);
      const bool is_carried_out = !discovered_.container.pod && covers(nodes);
      if (!nodes.empty() && !is_carried_out) {
        claim(Source::cdi, name).nodes = std::move(nodes);
      }
    }
  }

  void collect_nvidia(const oci::Spec& spec) {
    const bool has_hook =
        std::ranges::any_of(spec.hooks, [](const oci::Hook& hook) { return nvidia::is_nvidia_hook(hook.path); });
    nvidia::Request request = nvidia::request_in(spec.environment, spec.is_privileged);
    std::vector<std::string> by_mount;
    for (const oci::SpecMount& mount : spec.mounts) {
      // An image can declare a volume, but not a mount of /dev/null.
      if (sources_.nvidia.accepts_mounts && mount.source == "/dev/null" &&
          mount.destination.starts_with(kDeviceMounts)) {
        by_mount.push_back(mount.destination.substr(kDeviceMounts.size()));
      }
    }
    request.visible = by_mount.empty() ? request.visible : join(by_mount, ",");
    const nvidia::Resolved resolved = nvidia::resolve(request, inventory_);
    if (resolved.nodes.empty()) {
      return;
    }
    const std::string where = "NVIDIA_VISIBLE_DEVICES=" + request.visible + " in " + discovered_.spec_file;
    Claim& made = claim(has_hook ? Source::nvidia_hook : Source::environment, where);
    made.nodes = resolved.nodes;
    made.not_wanted = resolved.not_wanted;
    if (has_hook && by_mount.empty() && !sources_.nvidia.accepts_environment && !spec.is_privileged) {
      made.refused = "NVIDIA's settings refuse requests by environment from unprivileged containers";
    }
    if (!has_hook && covers(resolved.nodes)) {
      claims_.pop_back();  // the request was fulfilled without the hook: the spec has the nodes
    }
  }

  // Does a claim of the spec have all of these nodes already?
  [[nodiscard]] bool covers(const std::vector<WantedNode>& nodes) const {
    return std::ranges::all_of(nodes, [this](const WantedNode& node) {
      return std::ranges::any_of(claims_, [&node](const Claim& other) {
        return other.source == Source::oci &&
               std::ranges::find(other.nodes, node.path, &WantedNode::path) != other.nodes.end();
      });
    });
  }

  void collect_kubelet(const container::Pod& pod) {
    for (const kube::Allocation& allocation : sources_.checkpoint ? sources_.checkpoint->allocations : kNone) {
      if (allocation.pod_uid == pod.uid && !pod.uid.empty() && !pod.container.empty() &&
          allocation.container == pod.container) {
        collect_allocation(allocation);
      }
    }
    for (const kube::PreparedClaim& prepared : sources_.prepared) {
      if (pod.uid.empty() || std::ranges::find(prepared.pod_uids, pod.uid) == prepared.pod_uids.end()) {
        continue;
      }
      Claim& made = claim(Source::dra, "resource claim " + prepared.name);
      made.is_about_pod = true;
      for (const std::string& name : prepared.cdi_devices) {
        const std::vector<WantedNode> nodes = nodes_of_cdi(name);
        made.nodes.insert(made.nodes.end(), nodes.begin(), nodes.end());
      }
    }
  }

  void collect_allocation(const kube::Allocation& allocation) {
    Claim& made =
        claim(Source::kubelet, allocation.resource + " " + join(allocation.ids, ",") + " in " + kCheckpointFile);
    const auto want = [&made](const WantedNode& node) {
      if (std::ranges::find(made.nodes, node.path, &WantedNode::path) == made.nodes.end()) {
        made.nodes.push_back(node);
      }
    };
    for (const kube::PluginDevice& device : allocation.devices) {
      const std::optional<kernel::NodeOnHost> live = kernel::read_node(host_, device.host_path);
      const Result<Access> access = device::parse_access(device.permissions.empty() ? "rw" : device.permissions);
      want({device.container_path, live ? std::optional(live->device) : std::nullopt, access.value_or(Access::none)});
    }
    for (const std::string& name : allocation.cdi_devices) {
      std::ranges::for_each(nodes_of_cdi(name), want);
    }
    if (allocation.resource.starts_with("nvidia.com/")) {
      for (const std::string& id : allocation.ids) {
        std::ranges::for_each(nvidia::nodes_of(id, inventory_), want);
      }
      std::ranges::for_each(nvidia::resolve(nvidia::request_in(allocation.environment), inventory_).nodes, want);
    }
  }

  inline static const std::vector<kube::Allocation> kNone;

  const kernel::Host& host_;
  const DiscoveredContainer& discovered_;
  const Sources& sources_;
  const Inventory& inventory_;
  std::vector<Claim> claims_;
};

bool is_absent(const Error& error) { return error.code == std::errc::no_such_file_or_directory; }

}  // namespace

void read_allocations(const kernel::Host& host, Sources& sources) {
  const Result<std::string> checkpoint =
      kernel::read_trusted_file(host.root.get(), kernel::below_root(kCheckpointFile));
  if (checkpoint) {
    Result<kube::Checkpoint> parsed = kube::parse_checkpoint(*checkpoint);
    if (parsed) {
      sources.checkpoint = *std::move(parsed);
      sources.knows_allocations = true;
    } else {
      sources.checkpoint_problem = parsed.error().message;
    }
  } else if (!is_absent(checkpoint.error())) {
    sources.checkpoint_problem = checkpoint.error().message;
  }
  const Result<std::string> prepared = kernel::read_trusted_file(host.root.get(), kernel::below_root(kPreparedFile));
  if (prepared) {
    const Result<std::vector<kube::PreparedClaim>> parsed = kube::parse_prepared_claims(*prepared);
    sources.prepared = parsed.value_or(std::vector<kube::PreparedClaim>());
    sources.knows_allocations = sources.knows_allocations || parsed.has_value();
    if (!parsed) {
      sources.notes.push_back(parsed.error().message);
    }
  }
}

Sources read_sources(const kernel::Host& host) {
  Sources sources;
  sources.cdi = cdi::read_registry(host);
  read_allocations(host, sources);
  const Result<std::string> settings =
      kernel::read_trusted_file(host.root.get(), kernel::below_root(nvidia::kSettingsFile));
  if (settings) {
    const Result<nvidia::Settings> parsed = nvidia::parse_settings(*settings);
    sources.has_nvidia_settings = parsed.has_value();
    sources.nvidia = parsed.value_or(nvidia::Settings());
    if (!parsed) {
      sources.notes.push_back(parsed.error().message);
    }
  } else if (!is_absent(settings.error())) {
    sources.notes.push_back(settings.error().message);
  }
  return sources;
}

std::vector<Claim> claims_of(const kernel::Host& host, const DiscoveredContainer& discovered, const Sources& sources,
                             const Inventory& inventory) {
  std::vector<Claim> claims = ClaimCollector(host, discovered, sources, inventory).collect();
  const container::Container& it = discovered.container;
  return weigh(std::move(claims), {it.pod.has_value(), sources.knows_allocations, it.inside ? it.inside->value : ""});
}

container::Entitlement entitlement_of(const kernel::Host& host, const DiscoveredContainer& discovered,
                                      const Sources& sources, const Inventory& inventory,
                                      const config::Config& config) {
  return entitle(claims_of(host, discovered, sources, inventory), inventory, config.classes);
}

}  // namespace hf::host
