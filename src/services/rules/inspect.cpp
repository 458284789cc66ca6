#include "services/rules/inspect.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>

#include "adapters/bytecode/program_file.h"
#include "core/bpf/analyse.h"
#include "core/bpf/call.h"
#include "core/bpf/producer.h"
#include "kernel/cgroup/observe.h"
#include "kernel/cgroup/symbols.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::rules {
namespace {

using container::Answer;
using container::Gate;
using device::Access;
using device::Table;

// A program file may name the kernel it was dumped from: where that is this kernel, its symbols name the calls.
bpf::CallNames names_for(host::HostOpener& opener, const bytecode::ProgramFile& file) {
  const Result<host::OpenHost*> open = opener.get();
  if (!open || file.kernel.empty()) {
    return {};
  }
  const Result<std::string> release = kernel::read_kernel_release((*open)->host);
  return release && *release == file.kernel ? kernel::KernelSymbols().names_for((*open)->host, file.code)
                                            : bpf::CallNames{};
}

Result<Gate> read_file_gate(host::HostOpener& opener, const std::string& path) {
  const std::string text = TRY(kernel::read_regular_file(path));
  Result<bytecode::ProgramFile> file = bytecode::parse_program_file(text);
  if (!file) {
    return fail(file.error().code, path + ": " + file.error().message);
  }
  const bpf::CallNames names = names_for(opener, *file);
  Gate gate;
  gate.owner = bpf::producer_of(file->code, file->name);
  gate.meaning = bpf::analyse(file->code, names);
  gate.may_override = bpf::may_override(file->code, names);
  if (bpf::Readable<Table> overrides = bpf::analyse_overrides(file->code, names)) {
    gate.overrides = *std::move(overrides);
  } else {
    gate.meaning = std::unexpected(std::move(overrides).error());
  }
  gate.program = container::AttachedProgram{
      std::nullopt, file->name, std::nullopt, std::nullopt, container::Attachment::several, file->code};
  return gate;
}

// The answers of the probe for each device of this host, as tables of what is allowed and what is refused.
struct Probed {
  Table allowed;
  Table refused;
};

Result<Probed> ask_for_all(kernel::Probe& probe, const std::vector<device::Device>& devices) {
  std::vector<device::Box> allowed;
  std::vector<device::Box> refused;
  for (const device::Device& device : devices) {
    for (const Access access : {Access::mknod, Access::read, Access::write, Access::read | Access::write}) {
      const bool yes = TRY(probe.ask({device, access}));
      (yes ? allowed : refused)
          .push_back({device.kind,
                      {device.major, device.major},
                      {device.minor, device.minor},
                      device::AccessSet::exactly(access)});
    }
  }
  return Probed{Table::of_boxes(allowed), Table::of_boxes(refused)};
}

}  // namespace

Result<kernel::CgroupsPtr> open_own_cgroups(const kernel::Host& host, const Target& target) {
  if (const auto* container = std::get_if<container::Container>(&target)) {
    const kernel::ContainerHandle handle = TRY(kernel::ContainerHandle::open(host, *container));
    if (handle.own().empty()) {
      return fail(std::errc::operation_not_permitted,
                  "container " + title_of(*container) +
                      ": its first process is in none of its own cgroups, and others' are not changed");
    }
    return handle.own().back();
  }
  return std::make_shared<const kernel::CgroupsOfProcess>(TRY(open_cgroups(host, target)));
}

Result<kernel::CgroupsOfProcess> open_cgroups(const kernel::Host& host, const Target& target) {
  if (const auto* container = std::get_if<container::Container>(&target)) {
    kernel::ContainerHandle handle = TRY(kernel::ContainerHandle::open(host, *container));
    return kernel::duplicate(handle.actual());
  }
  if (const container::Pid* pid = std::get_if<container::Pid>(&target)) {
    return kernel::open_cgroups_of(host, *pid);
  }
  if (const CgroupDirectory* directory = std::get_if<CgroupDirectory>(&target)) {
    return kernel::open_cgroups_at(host, directory->path);
  }
  return fail(std::errc::invalid_argument, "only containers, pid:N and cgroup:PATH can be changed");
}

Result<Inspection> Inspection::open(host::HostOpener& opener, const NamedTarget& named) {
  const auto& [text, target] = named;
  if (const FilePath* file = std::get_if<FilePath>(&target)) {
    Gate gate = TRY(read_file_gate(opener, file->path));
    gate.where = text;
    return Inspection(text, {{std::move(gate)}, {}, {}});
  }
  const host::OpenHost& open = *TRY(opener.get());
  if (const container::ProgramId* id = std::get_if<container::ProgramId>(&target)) {
    return Inspection(text, {{TRY(kernel::observe_program(open.filters, *id))}, {}, {}});
  }
  kernel::CgroupsOfProcess cgroups = TRY(open_cgroups(open.host, target));
  Inspection inspection(text, TRY(kernel::observe(open.filters, cgroups)));
  // The probe joins the root of a hierarchy that the target is not in: the gates of our own cgroup must not judge it.
  for (const container::Hierarchy hierarchy : {container::Hierarchy::v1, container::Hierarchy::v2}) {
    const bool is_v1 = hierarchy == container::Hierarchy::v1;
    if (!(is_v1 ? cgroups.v1 : cgroups.v2) && open.host.mount_of(hierarchy)) {
      inspection.root_elsewhere_ = TRY(kernel::open_root(open.host, hierarchy));
    }
  }
  inspection.cgroups_ = std::move(cgroups);
  return inspection;
}

Result<kernel::Probe*> Inspection::probe() {
  if (!cgroups_) {
    return fail(std::errc::operation_not_supported, "only processes and cgroups can be probed");
  }
  if (!probe_) {
    std::vector<const kernel::Cgroup*> joined;
    for (const std::optional<kernel::Cgroup>* cgroup : {&cgroups_->v1, &cgroups_->v2, &root_elsewhere_}) {
      if (*cgroup) {
        joined.push_back(&**cgroup);
      }
    }
    probe_.emplace(kernel::Probe::start(joined));
  }
  if (!*probe_) {
    return std::unexpected(probe_->error());
  }
  return &**probe_;
}

report::TargetRules Inspection::rules() {
  report::TargetRules rules{name_, observed_.gates, container::effective(observed_), report::Source::read};
  if (rules.effective.exact || !cgroups_) {
    return rules;
  }
  const Result<kernel::Probe*> asker = probe();
  const Result<Probed> probed =
      asker ? ask_for_all(**asker, kernel::read_device_nodes("/dev")) : std::unexpected(asker.error());
  if (!probed) {
    rules.effective.why += "; and no probe: " + probed.error().message;
    return rules;
  }
  rules.source = report::Source::probe;
  const bool unread = std::ranges::any_of(observed_.gates, [](const Gate& gate) { return !gate.meaning; });
  rules.effective.table = unread ? probed->allowed : rules.effective.table - probed->refused;
  return rules;
}

Answer Inspection::ask(const device::Request& request) {
  // The kernel checks no gate for the device 0:0, neither on open nor on creating a character node (a whiteout).
  const bool is_zero = request.device.major == 0 && request.device.minor == 0;
  const bool creates_block = contains(request.access, Access::mknod) && request.device.kind == device::Kind::block;
  if (cgroups_ && is_zero && !creates_block) {
    return {};
  }
  Answer answer = container::judge(observed_, request);
  if (answer.kind != Answer::Kind::unknown || !cgroups_) {
    return answer;
  }
  const Result<kernel::Probe*> asker = probe();
  const Result<bool> allowed = asker ? (*asker)->ask(request) : std::unexpected(asker.error());
  if (!allowed) {
    return {Answer::Kind::unknown, answer.detail + "; and no probe: " + allowed.error().message};
  }
  if (*allowed) {
    return {};
  }
  // Every gate that could be read allows it: one that could not be read refuses.
  std::string gates;
  for (const std::string& name : container::names_of_unclear(observed_, request)) {
    gates += (gates.empty() ? "" : " or ") + name;
  }
  return {Answer::Kind::deny, gates + " (source: probe)"};
}

Result<report::HostRules> inspect_host(host::HostOpener& opener) {
  const host::OpenHost& open = *TRY(opener.get());
  kernel::ObservedHost observed = TRY(kernel::observe_host(open.host, open.filters));
  return report::HostRules{kernel::layout_of(open.host), std::move(observed.gates), observed.hiding, observed.too_deep};
}

}  // namespace hf::rules
