#include "kernel/cgroup/bpf_api.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <iterator>
#include <vector>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/bpf/producer.h"

namespace hf::kernel {
namespace {

using container::Attachment;
using container::ProgramId;

// Parts of union bpf_attr that Debian 12's headers do not have yet. Kernel: a larger size than it expects is accepted
// as long as the rest is zero. Kernels 6.17 to 7.1 write `revision` whatever size is passed, so a smaller size is never
// passed.
struct QueryAttributes {
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = BPF_CGROUP_DEVICE;
  std::uint32_t query_flags = 0;
  std::uint32_t attach_flags = 0;
  std::uint64_t program_ids = 0;
  std::uint32_t program_count = 0;
  std::uint32_t padding = 0;
  std::uint64_t program_attach_flags = 0;
  std::uint64_t link_ids = 0;
  std::uint64_t link_attach_flags = 0;
  std::uint64_t revision = 0;
};
static_assert(offsetof(QueryAttributes, revision) == 56);

struct AttachAttributes {
  std::uint32_t target_fd = 0;
  std::uint32_t program_fd = 0;
  std::uint32_t attach_type = BPF_CGROUP_DEVICE;
  std::uint32_t attach_flags = 0;
  std::uint32_t replace_fd = 0;
  std::uint32_t relative_fd = 0;
  std::uint64_t expected_revision = 0;
};

// Kernel: a cgroup has at most 64 programs (BPF_CGROUP_MAX_PROGS); an effective list adds up those of all levels.
constexpr std::size_t kDefaultPrograms = 64;
constexpr std::size_t kMostPrograms = std::size_t(64) * 1024;

template <class Attributes>
int call_bpf(int command, Attributes& attributes) {
  return int(::syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

Attachment attachment_of(std::uint32_t flags) {
  if ((flags & BPF_F_ALLOW_MULTI) != 0) {
    return Attachment::several;
  }
  return (flags & BPF_F_ALLOW_OVERRIDE) != 0 ? Attachment::overridable : Attachment::single;
}

std::uint32_t flags_of(Attachment attachment) {
  switch (attachment) {
    case Attachment::several: return BPF_F_ALLOW_MULTI;
    case Attachment::overridable: return BPF_F_ALLOW_OVERRIDE;
    case Attachment::single: return 0;
  }
  return 0;
}

std::optional<std::int64_t> seconds_since_1970(std::uint64_t nanoseconds_since_boot) {
  timespec now{};
  timespec uptime{};
  if (::clock_gettime(CLOCK_REALTIME, &now) < 0 || ::clock_gettime(CLOCK_BOOTTIME, &uptime) < 0) {
    return std::nullopt;
  }
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t booted = (now.tv_sec - uptime.tv_sec) * kSecond + now.tv_nsec - uptime.tv_nsec;
  return (booted + std::int64_t(nanoseconds_since_boot)) / kSecond;
}

bool all_zero(const bpf::Code& code) {
  return std::ranges::all_of(code, [](const bpf::Instruction& at) { return at.code == 0 && at.imm == 0; });
}

constexpr std::size_t kMostMaps = 4;               // whose ids are read; a filter has none, the shield has one
constexpr std::size_t kDefaultInstructions = 512;  // most filters have fewer, so one call is enough

int read_info(const Fd& fd, bpf::Code& code, std::array<std::uint32_t, kMostMaps>& maps, bpf_prog_info& info) {
  info = {};
  info.nr_map_ids = std::uint32_t(maps.size());
  info.map_ids = std::uint64_t(reinterpret_cast<std::uintptr_t>(maps.data()));
  info.xlated_prog_len = std::uint32_t(code.size() * sizeof(bpf::Instruction));
  info.xlated_prog_insns = std::uint64_t(reinterpret_cast<std::uintptr_t>(code.data()));
  std::uint32_t size = sizeof(info);
  return ::bpf_obj_get_info_by_fd(fd.get(), &info, &size) < 0 ? errno : 0;
}

Result<Program> describe(Fd fd, ProgramId id) {
  bpf::Code code(kDefaultInstructions);
  bpf_prog_info info{};
  std::array<std::uint32_t, kMostMaps> maps{};
  int failed = read_info(fd, code, maps, info);
  if (failed == 0 && info.type != BPF_PROG_TYPE_CGROUP_DEVICE) {
    return fail(std::errc::invalid_argument,
                "read program " + std::to_string(id.value) + ": it is not a device filter");
  }
  const std::size_t instructions = info.xlated_prog_len / sizeof(bpf::Instruction);
  if (failed == 0 && instructions > code.size()) {
    code.resize(instructions);
    failed = read_info(fd, code, maps, info);
  }
  if (failed != 0) {
    return fail_errno(failed, "read program " + std::to_string(id.value));
  }
  code.resize(std::min(code.size(), instructions));
  code.shrink_to_fit();
  // Kernel: blinded code is withheld (a null pointer or zeros) from processes that may not see addresses.
  if (info.xlated_prog_insns == 0 || all_zero(code)) {
    code.clear();
    code.shrink_to_fit();
  }
  const std::string program_name(info.name, ::strnlen(info.name, sizeof(info.name)));
  std::uint64_t tag = 0;
  static_assert(sizeof(tag) == sizeof(info.tag));
  std::memcpy(&tag, info.tag, sizeof(tag));
  return Program{std::move(fd),
                 {info.id},
                 program_name,
                 info.created_by_uid,
                 seconds_since_1970(info.load_time),
                 std::move(code),
                 tag,
                 {maps.begin(), maps.begin() + std::ptrdiff_t(std::min<std::size_t>(info.nr_map_ids, kMostMaps))}};
}

// Finds the bpf_link that attaches a program to a cgroup. Such a program can only be replaced through its link.
Fd find_link(const Cgroup& cgroup, ProgramId program) {
  std::uint32_t id = 0;
  while (::bpf_link_get_next_id(id, &id) == 0) {
    Fd link(::bpf_link_get_fd_by_id(id));
    bpf_link_info info{};
    std::uint32_t size = sizeof(info);
    if (!link || ::bpf_obj_get_info_by_fd(link.get(), &info, &size) < 0) {
      continue;
    }
    if (info.type == BPF_LINK_TYPE_CGROUP && info.cgroup.cgroup_id == cgroup.id.value &&
        info.cgroup.attach_type == BPF_CGROUP_DEVICE && info.prog_id == program.value) {
      return link;
    }
  }
  return {};
}

class KernelBpf final : public Bpf {
 public:
  Result<AttachedPrograms> query(const Cgroup& cgroup, Reach reach) override {
    std::vector<std::uint32_t> ids(kDefaultPrograms);
    while (true) {
      QueryAttributes attributes;
      attributes.target_fd = std::uint32_t(cgroup.directory.get());
      attributes.query_flags = reach == Reach::effective ? BPF_F_QUERY_EFFECTIVE : 0;
      attributes.program_ids = std::uint64_t(reinterpret_cast<std::uintptr_t>(ids.data()));
      attributes.program_count = std::uint32_t(ids.size());
      if (call_bpf(BPF_PROG_QUERY, attributes) == 0) {
        ids.resize(attributes.program_count);
        AttachedPrograms attached{{}, attachment_of(attributes.attach_flags), attributes.revision};
        std::ranges::transform(ids, std::back_inserter(attached.ids), [](std::uint32_t id) { return ProgramId{id}; });
        return attached;
      }
      if (errno == ENOSPC && ids.size() < kMostPrograms) {
        ids.resize(ids.size() * 4);
        continue;
      }
      const bool unsupported = errno == ENOSYS || errno == EINVAL;
      return fail_errno(errno, (unsupported ? "this kernel has no device programs (CONFIG_CGROUP_BPF): " : "") +
                                   ("ask for the device programs of " + cgroup.where));
    }
  }

  Result<Program> open(ProgramId id) override {
    Fd fd(::bpf_prog_get_fd_by_id(id.value));
    if (!fd) {
      return fail_errno(errno, "open program " + std::to_string(id.value));
    }
    return describe(std::move(fd), id);
  }

  Result<Program> load(const bpf::Code& code) override {
    const std::string name(bpf::kOurName);
    Fd fd(::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, name.c_str(), "Apache-2.0", code.data(), code.size(), nullptr));
    if (!fd) {
      const int number = errno;
      return fail_errno(number, "load a device filter" + verifier_message(code));
    }
    return describe(std::move(fd), {0});
  }

  Result<ShieldMapPtr> create_shield_map() override { return TRY(KernelShieldMap::create()); }

  Result<ShieldMapPtr> open_shield_map(const Program& shield) override {
    if (shield.maps.size() != 1) {
      return fail(std::errc::invalid_argument,
                  "program " + std::to_string(shield.id.value) + " has no map of a shield");
    }
    return TRY(KernelShieldMap::open(shield.maps.front()));
  }

  Result<Program> load_shield(const ShieldMap& map, unsigned depth) override {
    const bpf::Code code = shield_code(dynamic_cast<const KernelShieldMap&>(map).fd().get(), depth);
    bpf_prog_load_opts options{};
    options.sz = sizeof(options);
    options.expected_attach_type = BPF_CGROUP_DEVICE;
    Fd fd(::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, shield_name(depth).c_str(), "Apache-2.0", code.data(),
                          code.size(), &options));
    if (!fd) {
      const bool is_too_old = errno == EINVAL;
      return fail_errno(errno, is_too_old ? "load the shield: this kernel has no bpf_set_retval for device programs "
                                            "(5.18 and later have)"
                                          : "load the shield");
    }
    return describe(std::move(fd), {0});
  }

  Result<void> attach(const Cgroup& cgroup, const Program& program, const AttachMode& mode) override {
    AttachAttributes attributes;
    attributes.target_fd = std::uint32_t(cgroup.directory.get());
    attributes.program_fd = std::uint32_t(program.fd.get());
    if (const AttachReplacing* instead = std::get_if<AttachReplacing>(&mode)) {
      attributes.attach_flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE;
      attributes.replace_fd = std::uint32_t(instead->old.fd.get());
    } else if (const AttachAlone* alone = std::get_if<AttachAlone>(&mode)) {
      attributes.attach_flags = flags_of(alone->attachment);
      attributes.expected_revision = alone->revision;
    } else {
      attributes.attach_flags = BPF_F_ALLOW_MULTI;
    }
    if (call_bpf(BPF_PROG_ATTACH, attributes) == 0) {
      return {};
    }
    const int number = errno;
    if (const AttachReplacing* instead = std::get_if<AttachReplacing>(&mode); instead != nullptr && number == ENOENT) {
      if (const Fd link = find_link(cgroup, instead->old.id)) {
        return update_link(cgroup, link, program, instead->old);
      }
    }
    return fail_errno(number, "attach a device filter to " + cgroup.where);
  }

  Result<void> detach(const Cgroup& cgroup, const Program& program, std::uint64_t revision) override {
    AttachAttributes attributes;
    attributes.target_fd = std::uint32_t(cgroup.directory.get());
    attributes.program_fd = std::uint32_t(program.fd.get());
    attributes.expected_revision = revision;
    if (call_bpf(BPF_PROG_DETACH, attributes) < 0) {
      return fail_errno(errno, "detach program " + std::to_string(program.id.value) + " from " + cgroup.where);
    }
    return {};
  }

 private:
  static Result<void> update_link(const Cgroup& cgroup, const Fd& link, const Program& program, const Program& old) {
    bpf_link_update_opts options{};
    options.sz = sizeof(options);
    options.flags = BPF_F_REPLACE;
    options.old_prog_fd = std::uint32_t(old.fd.get());
    if (::bpf_link_update(link.get(), program.fd.get(), &options) == 0) {
      return {};
    }
    // Kernel: EPERM means that the link holds another program by now.
    return fail_errno(errno == EPERM ? ENOENT : errno, "update the link on " + cgroup.where);
  }

  // The last lines of the verifier's log. They are read only after it has refused the code.
  static std::string verifier_message(const bpf::Code& code) {
    std::string log(std::size_t(64) * 1024, '\0');
    bpf_prog_load_opts options{};
    options.sz = sizeof(options);
    options.log_level = 1;
    options.log_size = std::uint32_t(log.size());
    options.log_buf = log.data();
    const Fd fd(
        ::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, nullptr, "Apache-2.0", code.data(), code.size(), &options));
    const std::string_view text(log.data(), ::strnlen(log.data(), log.size()));
    const std::size_t end = text.find_last_not_of('\n');
    if (fd || end == std::string_view::npos) {
      return "";
    }
    const std::size_t start = text.rfind('\n', text.rfind('\n', end) - 1);
    std::string message(text.substr(start == std::string_view::npos ? 0 : start + 1, end - start));
    std::ranges::replace(message, '\n', ' ');
    return " (verifier: " + message + ")";
  }
};

}  // namespace

std::unique_ptr<Bpf> open_kernel_bpf() { return std::make_unique<KernelBpf>(); }

Result<Program> load_again(const Program& program) {
  const bpf::Code& code = program.code;
  Fd fd(::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, program.name.empty() ? nullptr : program.name.c_str(),
                        "Apache-2.0", code.data(), code.size(), nullptr));
  if (!fd) {
    return fail_errno(errno, "load program " + std::to_string(program.id.value) + " again");
  }
  return describe(std::move(fd), {0});
}

bool is_overtaken(const Error& error) {
  return error.code == std::errc::no_such_file_or_directory || error.code == std::errc(ESTALE);
}

}  // namespace hf::kernel
