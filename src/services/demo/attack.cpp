#include "services/demo/attack.h"

#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/files/file.h"

namespace hf::demo {
namespace {

constexpr unsigned kLinger = 10'000;  // µs; a real runtime also runs on for a while, in which the guard can identify it

Result<void> write_denies(const std::string& cgroup, const std::vector<std::string>& rules) {
  for (const std::string& rule : rules) {
    TRY(kernel::write_text(AT_FDCWD, cgroup + "/devices.deny", rule));
  }
  return {};
}

// One program is replaced by compare and swap; where there are several, the new one is attached and then the others are
// detached: as runc does it.
Result<void> replace_filter(kernel::Bpf& bpf, const kernel::Cgroup& cgroup, const kernel::Program& filter) {
  const kernel::AttachedPrograms attached = TRY(bpf.query(cgroup, kernel::Reach::own));
  if (attached.ids.size() == 1) {
    const kernel::Program old = TRY(bpf.open(attached.ids.front()));
    return bpf.attach(cgroup, filter, kernel::AttachReplacing{old});
  }
  TRY(bpf.attach(cgroup, filter, kernel::AttachAlongside{}));
  for (const container::ProgramId id : attached.ids) {
    TRY(bpf.detach(cgroup, TRY(bpf.open(id)), 0));
  }
  return {};
}

Result<void> apply_filter(const std::vector<std::string>& arguments) {
  const std::optional<std::uint32_t> id = parse_number<std::uint32_t>(arguments[2]);
  if (!id) {
    return fail(std::errc::invalid_argument, "attack with program " + quote(arguments[2]));
  }
  const kernel::Host host = TRY(kernel::open_host());
  const kernel::CgroupsOfProcess cgroups = TRY(kernel::open_cgroups_at(host, arguments[1]));
  if (!cgroups.v2) {
    return fail(std::errc::invalid_argument, "attack " + quote(arguments[1]) + ": not a cgroup of v2");
  }
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  const kernel::Program filter = TRY(kernel::load_again(TRY(bpf->open({*id}))));
  return arguments[0] == "replace" ? replace_filter(*bpf, *cgroups.v2, filter)
                                   : bpf->attach(*cgroups.v2, filter, kernel::AttachAlongside{});
}

kernel::Command own_command(std::vector<std::string> arguments) {
  kernel::Command command;
  std::error_code ignored;
  command.arguments = {std::filesystem::read_symlink("/proc/self/exe", ignored), "demo-attack"};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

bool is_attacked_by_its_runtime(const Workload& workload) {
  return workload.hierarchy() == container::Hierarchy::v1 && workload.runtime() &&
         loses_devices_at_update(*workload.runtime());
}

std::vector<Attack> attacks_on(const Workload& workload, const Gpu& gpu) {
  const std::string& where = workload.cgroup().where;
  if (workload.hierarchy() == container::Hierarchy::v2) {
    const std::string filter = std::to_string(workload.first_filter()->id.value);
    return {{"holdfast itself replaces the filter with the GPU by the runtime's own",
             own_command({"replace", where, filter})},
            {"holdfast itself attaches the runtime's own filter beside it, as systemd does",
             own_command({"beside", where, filter})}};
  }
  if (is_attacked_by_its_runtime(workload)) {
    kernel::Command command;
    command.arguments = workload.runtime_arguments({"update", "--cpu-share", "512", workload.id()});
    command.before = workload.runtime_view();
    return {{"runc " + workload.runtime()->version + " update --cpu-share 512", command}};
  }
  return {write_as_old_runc(where, gpu)};
}

Attack write_as_old_runc(const std::string& cgroup, const Gpu& gpu) {
  std::vector<std::string> arguments = {"v1", cgroup};
  for (const container::WantedNode& node : gpu.nodes) {
    arguments.push_back(to_string(*node.claimed) + " " + to_string(node.access));
  }
  return {"holdfast itself writes what an update by runc 1.0.0-rc93 writes", own_command(arguments)};
}

Result<void> carry_out_attack(const std::vector<std::string>& arguments) {
  const bool is_v1 = arguments.size() > 2 && arguments.front() == "v1";
  const bool is_v2 = arguments.size() == 3 && (arguments.front() == "replace" || arguments.front() == "beside");
  if (!is_v1 && !is_v2) {
    return fail(std::errc::invalid_argument, "attack: v1 CGROUP RULE…, replace CGROUP PROGRAM, beside CGROUP PROGRAM");
  }
  TRY(is_v1 ? write_denies(arguments[1], {arguments.begin() + 2, arguments.end()}) : apply_filter(arguments));
  ::usleep(kLinger);
  return {};
}

}  // namespace hf::demo
