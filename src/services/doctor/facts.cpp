#include "services/doctor/facts.h"

#include <array>
#include <chrono>

#include "adapters/journal/journal.h"
#include "adapters/journal/status.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/process/subprocess.h"

namespace hf::doctor {
namespace {

std::string read(const kernel::Host& host, const std::string& path) {
  return std::string(trim(kernel::read_text(host.root.get(), path).value_or("")));
}

std::map<std::string, std::string> find_libraries(const kernel::Host& host) {
  constexpr std::array<const char*, 5> kDirectories = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                                       "/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current",
                                                       "/usr/lib"};
  std::map<std::string, std::string> found;
  for (const char* directory : kDirectories) {
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(directory))) {
      if (std::optional<std::string> version = library_version_in(name)) {
        found[std::string(directory) + "/" + name] = *std::move(version);
      }
    }
  }
  return found;
}

std::vector<HostFacts::HardCodedRule> find_lxc_rules(const kernel::Host& host) {
  std::vector<std::string> files;
  for (const std::string& name : kernel::list_names(host.root.get(), "var/lib/lxc")) {
    files.push_back("/var/lib/lxc/" + name + "/config");
  }
  for (const std::string& name : kernel::list_names(host.root.get(), "etc/pve/lxc")) {
    files.push_back("/etc/pve/lxc/" + name);
  }
  std::vector<HostFacts::HardCodedRule> rules;
  for (const std::string& file : files) {
    const std::string text = read(host, kernel::below_root(file));
    for (const std::string_view line : split(text, '\n')) {
      const std::size_t separator = line.find_first_of("=:");
      const std::string_view key = trim(line.substr(0, separator));
      if (separator == std::string_view::npos ||
          (key != "lxc.cgroup2.devices.allow" && key != "lxc.cgroup.devices.allow")) {
        continue;
      }
      const std::string rule(trim(line.substr(separator + 1)));
      const Result<device::Rule> parsed = device::parse_rule(rule);
      if (parsed && parsed->selector.major && parsed->selector.major->is_point() &&
          parsed->selector.kind == device::Kind::character) {
        rules.push_back({file, rule, parsed->selector.major->first});
      }
    }
  }
  return rules;
}

bool has_link(const kernel::Host& host, const device::Device& device) {
  const std::string name = std::to_string(device.major) + ":" + std::to_string(device.minor);
  const std::string directory = device.kind == device::Kind::block ? "block/" : "char/";
  return kernel::exists(host.root.get(), "dev/" + directory + name) ||
         kernel::exists(host.root.get(), "sys/dev/" + directory + name);
}

std::string read_kubelet_version(const kernel::Host& host) {
  for (const char* path : {"/usr/bin/kubelet", "/usr/local/bin/kubelet", "/opt/bin/kubelet"}) {
    const Result<std::string> text = kernel::run_program(host, path, {"--version"}, std::chrono::milliseconds(2000));
    if (text) {
      const std::vector<std::string_view> fields = split_fields(*text);  // "Kubernetes v1.30.2"
      return fields.size() >= 2 ? std::string(fields[1]) : std::string();
    }
  }
  return {};
}

std::optional<kube::CpuState> read_cpu_state(const kernel::Host& host, const std::string& kubelet) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kubelet + "/cpu_manager_state");
  Result<kube::CpuState> state = text ? kube::parse_cpu_state(*text) : std::unexpected(text.error());
  return state ? std::optional(*std::move(state)) : std::nullopt;
}

std::set<HostFacts::MissingFile> find_missing_files(const kernel::Host& host, const cdi::Registry& registry) {
  std::set<HostFacts::MissingFile> missing;
  for (const cdi::Spec& spec : registry.specs) {
    for (const container::ContainerEdits* edits : registry.effective_edits(spec)) {
      for (const container::MountEdit& mount : edits->mounts) {
        const bool is_of_host = mount.source.starts_with('/');  // a pseudo file system such as tmpfs has no path
        if (is_of_host && !kernel::exists(host.root.get(), kernel::below_root(mount.source))) {
          missing.insert({mount.source, spec.file});
        }
      }
    }
  }
  return missing;
}

}  // namespace

std::optional<std::string> library_version_in(std::string_view file_name) {
  constexpr std::string_view kName = "libnvidia-ml.so.";
  // libnvidia-ml.so.1 is a symlink.
  const bool is_library = file_name.starts_with(kName) && file_name.find('.', kName.size()) != std::string_view::npos;
  return is_library ? std::optional(std::string(file_name.substr(kName.size()))) : std::nullopt;
}

Result<HostFacts> read_host_facts(const host::OpenHost& opened, host::Census& census, host::Libraries libraries) {
  const kernel::Host& host = opened.host;
  HostFacts facts;
  facts.config = TRY(config::read_config(host));
  census = TRY(host::take_census(host, facts.config));
  facts.has_v2 = host.v2.has_value();
  facts.inventory = host::take_inventory(host, facts.config, libraries);
  facts.sources = host::read_sources(host, facts.config);
  facts.jit_harden = parse_number<std::uint32_t>(read(host, "proc/sys/net/core/bpf_jit_harden"));
  facts.has_systemd = systemd::is_running(host);
  facts.has_nri = kernel::exists(host.root.get(), kernel::below_root(facts.config.nri.socket));
  const std::string kubelet = kernel::below_root(facts.config.kube.root_dir);
  if (kernel::exists(host.root.get(), kubelet)) {
    facts.kubelet_version = read_kubelet_version(host);
    facts.cpu_state = read_cpu_state(host, kubelet);
  }
  if (facts.inventory.state_of("nvidia") != nullptr) {
    facts.log = nvidia::read_kernel_log(host);
    facts.library_files = find_libraries(host);
  }
  for (const device::Node& node : facts.inventory.nodes) {
    if (const std::optional<device::Device> device = node.numbers(); device && has_link(host, *device)) {
      facts.linked.insert(*device);
    }
  }
  facts.missing_cdi_files = find_missing_files(host, facts.sources.cdi);
  facts.lxc_rules = find_lxc_rules(host);
  facts.has_guard = journal::read_status(host).has_value();
  return facts;
}

report::Histories read_histories(const kernel::Host& host, const config::Config& config) {
  const Result<journal::Kept> kept = journal::read_journal(host, config.journal.directory);
  return kept ? report::histories_of(kept->records) : report::Histories();
}

}  // namespace hf::doctor
