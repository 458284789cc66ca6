#include "services/demo/attack.h"

#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/bpf_api.h"
#include "kernel/file.h"

namespace hf::demo {
namespace {

constexpr unsigned kLinger = 10'000;  // µs; a runtime has something left to do as well, and can be asked who it is

Result<void> write_denies(const std::string& cgroup, const std::vector<std::string>& rules) {
  for (const std::string& rule : rules) {
    TRY(kernel::write_text(AT_FDCWD, cgroup + "/devices.deny", rule));
  }
  return {};
}

// One program is replaced by compare and swap; of several the new one comes first, then the others go: as runc does it.
Result<void> put_back(kernel::Bpf& bpf, const kernel::Cgroup& cgroup, const kernel::Program& filter) {
  const kernel::AttachedPrograms attached = TRY(bpf.query(cgroup, kernel::Reach::own));
  if (attached.ids.size() == 1) {
    const kernel::Program old = TRY(bpf.open(attached.ids.front()));
    return bpf.attach(cgroup, filter, kernel::InsteadOf{old});
  }
  TRY(bpf.attach(cgroup, filter, kernel::Beside{}));
  for (const container::ProgramId id : attached.ids) {
    TRY(bpf.detach(cgroup, TRY(bpf.open(id)), 0));
  }
  return {};
}

Result<void> apply_filter(const std::vector<std::string>& words) {
  const std::optional<std::uint32_t> id = parse_number<std::uint32_t>(words[2]);
  if (!id) {
    return fail(std::errc::invalid_argument, "attack with program " + quote(words[2]));
  }
  const kernel::Host host = TRY(kernel::open_host());
  const kernel::CgroupsOfProcess cgroups = TRY(kernel::open_cgroups_at(host, words[1]));
  if (!cgroups.v2) {
    return fail(std::errc::invalid_argument, "attack " + quote(words[1]) + ": not a cgroup of v2");
  }
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  const kernel::Program filter = TRY(kernel::load_again(TRY(bpf->open({*id}))));
  return words[0] == "replace" ? put_back(*bpf, *cgroups.v2, filter)
                               : bpf->attach(*cgroups.v2, filter, kernel::Beside{});
}

kernel::Command ours(std::vector<std::string> more) {
  kernel::Command command;
  std::error_code ignored;
  command.words = {std::filesystem::read_symlink("/proc/self/exe", ignored), "demo-attack"};
  command.words.insert(command.words.end(), more.begin(), more.end());
  return command;
}

}  // namespace

std::vector<Attack> attacks_on(const Patient& patient, const Gpu& gpu) {
  const std::string& where = patient.cgroup().where;
  if (patient.hierarchy() == container::Hierarchy::v2) {
    const std::string filter = std::to_string(patient.first_filter()->id.value);
    return {{"the runtime's own filter in the place of the one with the GPU", ours({"replace", where, filter})},
            {"the runtime's own filter beside it, as systemd puts it there", ours({"beside", where, filter})}};
  }
  if (patient.runtime() && loses_devices_at_update(*patient.runtime())) {
    kernel::Command command;
    command.words = patient.runtime_words({"update", "--cpu-share", "512", patient.id()});
    command.before = patient.runtime_view();
    return {{"runc " + patient.runtime()->version + " update --cpu-share 512", command}};
  }
  std::vector<std::string> words = {"v1", where};
  for (const container::WantedNode& node : gpu.nodes) {
    words.push_back(to_string(*node.claimed) + " " + to_string(node.access));
  }
  return {{"the writes of a runc 1.0.0-rc93 update", ours(words)}};
}

Result<void> carry_out_attack(const std::vector<std::string>& words) {
  const bool is_v1 = words.size() > 2 && words.front() == "v1";
  const bool is_v2 = words.size() == 3 && (words.front() == "replace" || words.front() == "beside");
  if (!is_v1 && !is_v2) {
    return fail(std::errc::invalid_argument, "attack: v1 CGROUP RULE…, replace CGROUP PROGRAM, beside CGROUP PROGRAM");
  }
  TRY(is_v1 ? write_denies(words[1], {words.begin() + 2, words.end()}) : apply_filter(words));
  ::usleep(kLinger);
  return {};
}

}  // namespace hf::demo
