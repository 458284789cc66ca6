#include "host/evidence.h"

#include <algorithm>
#include <array>

#include "adapters/ledger/ledger.h"
#include "adapters/nvidia/resolve.h"
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

// /dev/null, terminals and similar devices: every container has them, and they belong to no device class.
bool is_default_device(const device::Rule& rule) {
  constexpr std::array<std::uint32_t, 3> kMajors = {1, 5, 136};
  return rule.selector.kind == device::Kind::character && rule.selector.major->is_point() &&
         std::ranges::find(kMajors, rule.selector.major->first) != kMajors.end();
}

class ClaimCollector {
 public:
  ClaimCollector(const kernel::Host& host, const Sources& sources, const Inventory& inventory)
      : host_(host), sources_(sources), inventory_(inventory) {}

  std::vector<Claim> collect(const DiscoveredContainer& discovered) {
    const std::optional<container::Pod>& pod = discovered.container.pod;
    collect_ledger(discovered);
    if (discovered.spec) {
      collect_spec(*discovered.spec, discovered.spec_file);
      collect_annotations(*discovered.spec, pod);
      collect_nvidia(*discovered.spec, discovered.spec_file);
    }
    collect_kubelet(pod);
    return std::move(claims_);
  }

  std::vector<Claim> collect(const NewContainer& created) {
    collect_spec(created.spec, created.spec_file);
    collect_annotations(created.spec, created.pod);
    add_nvidia(Source::nvidia_hook, request_text(created.nvidia.visible.text, created.spec_file),
               nvidia::resolve(created.nvidia, inventory_));
    collect_kubelet(created.pod);
    return std::move(claims_);
  }

 private:
  Claim& claim(Source source, const std::string& where) {
    Claim& made = claims_.emplace_back();
    made.source = source;
    made.where = printable(where);
    return made;
  }

  void collect_ledger(const DiscoveredContainer& discovered) {
    const container::Container& it = discovered.container;
    const Result<std::optional<ledger::Entry>> entry = ledger::read_entry(host_, it.id);
    if (!entry || !*entry) {
      return;  // the doctor reports a damaged entry
    }
    Claim& made = claim(Source::ledger, std::string(ledger::kDirectory) + "/" + it.id.value + ".json");
    made.nodes = (*entry)->nodes;
    const bool same_bundle = (*entry)->bundle.empty() || ((*entry)->bundle == it.bundle && discovered.spec);
    const bool same_cgroup = (*entry)->cgroup.empty() || (*entry)->cgroup == it.cgroup;
    made.refused = !same_bundle   ? "it was written for another bundle"
                   : !same_cgroup ? "it was written for another cgroup"
                                  : "";
  }

  // A node is claimed only as far as the spec's own rules allow its device: a node without a rule grants nothing.
  void collect_spec(const oci::Spec& spec, const std::string& file) {
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
      const Access access = table.access_to(node.device);
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
      Claim& made = claim(Source::oci, file);
      made.nodes = std::move(given.nodes);
      made.rules = std::move(given.rules);
    }
    if (!listed.nodes.empty()) {
      Claim& made = claim(Source::oci, file);
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

  void collect_annotations(const oci::Spec& spec, const std::optional<container::Pod>& pod) {
    for (const std::string& name : kube::cdi_names_in(spec.annotations)) {
      std::vector<WantedNode> nodes = nodes_of_cdi(name);
      const bool is_carried_out = !pod && covers(nodes);
      if (!nodes.empty() && !is_carried_out) {
        claim(Source::cdi, name).nodes = std::move(nodes);
      }
    }
  }

  void collect_nvidia(const oci::Spec& spec, const std::string& file) {
    const bool has_hook =
        std::ranges::any_of(spec.hooks, [](const oci::Hook& hook) { return nvidia::is_nvidia_hook(hook.path); });
    nvidia::Request request = nvidia::request_in(spec.environment, spec.is_privileged);
    nvidia::DeviceMounts mounts;
    for (const oci::SpecMount& mount : sources_.nvidia.accepts_mounts ? spec.mounts : kNoMounts) {
      add_mount(mounts, mount.source, mount.destination);
    }
    const bool is_by_mount = !mounts.names.empty();
    if (is_by_mount) {
      request.visible = mounts.visible;
    }
    const nvidia::Resolved resolved = nvidia::resolve(request, inventory_);
    if (!has_hook && covers(resolved.nodes)) {
      return;  // the request was fulfilled without the hook: the spec has the nodes
    }
    const std::string text = is_by_mount ? join(mounts.names, ",") : request.visible.text;
    const bool is_refused = has_hook && !is_by_mount && !sources_.nvidia.accepts_environment && !spec.is_privileged;
    add_nvidia(has_hook ? Source::nvidia_hook : Source::environment, request_text(text, file), resolved,
               is_refused ? "NVIDIA's settings refuse requests by environment from unprivileged containers" : "");
  }

  static std::string request_text(const std::string& visible, const std::string& file) {
    return "NVIDIA_VISIBLE_DEVICES=" + visible + " in " + file;
  }

  void add_nvidia(Source source, const std::string& where, const nvidia::Resolved& resolved,
                  const std::string& refused = {}) {
    if (!resolved.nodes.empty()) {
      Claim& made = claim(source, where);
      made.nodes = resolved.nodes;
      made.not_wanted = resolved.not_wanted;
      made.refused = refused;
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

  void collect_kubelet(const std::optional<container::Pod>& pod) {
    if (!pod) {
      return;
    }
    for (const kube::Allocation* allocation : allocations_to(sources_, *pod)) {
      collect_allocation(*allocation);
    }
    for (const kube::PreparedClaim* prepared : claims_prepared_for(sources_, *pod)) {
      Claim& made = claim(Source::dra, "resource claim " + prepared->name);
      made.is_about_pod = true;
      for (const std::string& name : prepared->cdi_devices) {
        const std::vector<WantedNode> nodes = nodes_of_cdi(name);
        made.nodes.insert(made.nodes.end(), nodes.begin(), nodes.end());
      }
    }
  }

  void collect_allocation(const kube::Allocation& allocation) {
    Claim& made = claim(Source::kubelet,
                        allocation.resource + " " + join(allocation.ids, ",") + " in " + checkpoint_file(sources_));
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
    }
    if (allocation.environment.contains("NVIDIA_VISIBLE_DEVICES")) {  // whatever the cluster calls the resource
      std::ranges::for_each(nvidia::resolve(nvidia::request_in(allocation.environment), inventory_).nodes, want);
    }
  }

  inline static const std::vector<oci::SpecMount> kNoMounts;

  const kernel::Host& host_;
  const Sources& sources_;
  const Inventory& inventory_;
  std::vector<Claim> claims_;
};

bool is_absent(const Error& error) { return error.code == std::errc::no_such_file_or_directory; }

}  // namespace

std::string checkpoint_file(const Sources& sources) {
  return sources.kubelet + "/device-plugins/kubelet_internal_checkpoint";
}

void read_allocations(const kernel::Host& host, Sources& sources) {
  const Result<std::string> checkpoint =
      kernel::read_trusted_file(host.root.get(), kernel::below_root(checkpoint_file(sources)));
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
  const Result<std::string> prepared =
      kernel::read_trusted_file(host.root.get(), kernel::below_root(sources.kubelet + "/dra_manager_state"));
  if (prepared) {
    const Result<std::vector<kube::PreparedClaim>> parsed = kube::parse_prepared_claims(*prepared);
    sources.prepared = parsed.value_or(std::vector<kube::PreparedClaim>());
    sources.knows_allocations = sources.knows_allocations || parsed.has_value();
    if (!parsed) {
      sources.notes.push_back(parsed.error().message);
    }
  }
}

Sources read_sources(const kernel::Host& host, const config::Config& config) {
  Sources sources;
  sources.kubelet = config.kube.root_dir;
  sources.trust = config.trust;
  sources.cdi = cdi::read_registry(host);
  read_allocations(host, sources);
  const Result<std::string> settings =
      kernel::read_trusted_file(host.root.get(), kernel::below_root(nvidia::kSettingsFile));
  if (settings) {
    const Result<nvidia::Settings> parsed = nvidia::parse_settings(*settings);
    sources.nvidia = parsed.value_or(nvidia::Settings());
    if (!parsed) {
      sources.notes.push_back(parsed.error().message);
    }
  } else if (!is_absent(settings.error())) {
    sources.notes.push_back(settings.error().message);
  }
  return sources;
}

std::vector<const kube::Allocation*> allocations_to(const Sources& sources, const container::Pod& pod) {
  std::vector<const kube::Allocation*> found;
  if (!sources.checkpoint || pod.uid.empty() || pod.container.empty()) {
    return found;
  }
  for (const kube::Allocation& allocation : sources.checkpoint->allocations) {
    if (allocation.pod_uid == pod.uid && allocation.container == pod.container) {
      found.push_back(&allocation);
    }
  }
  return found;
}

std::vector<const kube::PreparedClaim*> claims_prepared_for(const Sources& sources, const container::Pod& pod) {
  std::vector<const kube::PreparedClaim*> found;
  for (const kube::PreparedClaim& claim : sources.prepared) {
    if (!pod.uid.empty() && std::ranges::find(claim.pod_uids, pod.uid) != claim.pod_uids.end()) {
      found.push_back(&claim);
    }
  }
  return found;
}

std::vector<Claim> claims_of(const kernel::Host& host, const DiscoveredContainer& discovered, const Sources& sources,
                             const Inventory& inventory) {
  std::vector<Claim> claims = ClaimCollector(host, sources, inventory).collect(discovered);
  const container::Container& it = discovered.container;
  const container::TrustRule* const rule = find_trust(sources.trust, it.pod);
  return weigh(std::move(claims), {it.pod.has_value(), sources.knows_allocations, it.inside ? it.inside->value : "",
                                   rule == nullptr ? "" : to_string(*rule)});
}

std::vector<Claim> claims_of(const kernel::Host& host, const NewContainer& created, const Sources& sources,
                             const Inventory& inventory) {
  std::vector<Claim> claims = ClaimCollector(host, sources, inventory).collect(created);
  return weigh(std::move(claims), {created.pod.has_value(), sources.knows_allocations, ""});
}

container::Entitlement entitlement_of(const kernel::Host& host, const DiscoveredContainer& discovered,
                                      const Sources& sources, const Inventory& inventory,
                                      const config::Config& config) {
  return entitle(claims_of(host, discovered, sources, inventory), inventory, config.classes);
}

}  // namespace hf::host
