#include "kernel/cgroup/device_v1.h"

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/container/gate/change.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

constexpr std::string_view kScratchName = "holdfast-question-";

// A child cgroup that is removed together with this object.
class ScratchChild {
 public:
  static Result<ScratchChild> make(const Cgroup& parent) {
    std::string name = std::string(kScratchName) + std::to_string(::getpid());
    if (::mkdirat(parent.directory.get(), name.c_str(), 0700) < 0) {
      return fail_errno(errno, "make a cgroup in " + parent.where);
    }
    ScratchChild child(parent.directory.get(), std::move(name));
    child.directory_ = TRY(open_directory(parent.directory.get(), child.name_));
    return child;
  }

  ScratchChild(ScratchChild&&) noexcept = default;
  ScratchChild& operator=(ScratchChild&&) = delete;
  ScratchChild(const ScratchChild&) = delete;
  ScratchChild& operator=(const ScratchChild&) = delete;
  ~ScratchChild() {
    if (!name_.empty()) {
      ::unlinkat(parent_, name_.c_str(), AT_REMOVEDIR);
    }
  }

  [[nodiscard]] Result<void> write(const std::string& file, std::string_view text) const {
    return write_text(directory_.get(), file, text);
  }

 private:
  ScratchChild(int parent, std::string name) : parent_(parent), name_(std::move(name)) {}

  int parent_;
  std::string name_;
  Fd directory_;
};

}  // namespace

Result<device::V1List> read_v1_list(const Cgroup& cgroup) {
  Result<std::string> text = read_text(cgroup.directory.get(), "devices.list");
  if (!text) {
    // Kernel: reading a file of a removed cgroup through a directory that is still open fails with ENODEV.
    const bool gone = text.error().code == std::errc::no_such_device;
    return fail(gone ? std::errc::no_such_file_or_directory : text.error().code,
                cgroup.where + ": " + (gone ? "the cgroup is gone" : text.error().message));
  }
  Result<device::V1List> list = device::parse_v1_list(*text);
  return list ? list : fail(list.error().code, cgroup.where + ": " + list.error().message);
}

Result<void> write_v1(const Cgroup& cgroup, const device::CgroupWrite& write) {
  Result<void> written = write_text(cgroup.directory.get(), file_of(write.verb), to_string(write));
  const bool refused =
      !written && written.error().code == std::errc::operation_not_permitted && write.verb == device::Verb::allow;
  if (refused) {
    return fail(Reason::refused_above, "refused above: a cgroup over " + cgroup.where + " does not allow " +
                                           to_string(write) + "; a gate above the target is never widened");
  }
  return written ? written : fail(written.error().code, cgroup.where + ": " + written.error().message);
}

void remove_stale_scratch_cgroups(const Host& host) {
  const Result<Cgroup> root =
      host.v1 ? open_root(host, container::Hierarchy::v1) : fail(std::errc::not_supported, "v1");
  for (const std::string& name : root ? list_names(root->directory.get(), ".") : std::vector<std::string>()) {
    const std::optional<std::uint64_t> pid =
        name.starts_with(kScratchName) ? parse_number<std::uint64_t>(std::string_view(name).substr(kScratchName.size()))
                                       : std::nullopt;
    if (pid && !exists(host.root.get(), "proc/" + std::to_string(*pid))) {
      (void)::unlinkat(root->directory.get(), name.c_str(), AT_REMOVEDIR);
    }
  }
}

bool is_scratch_cgroup(const Cgroup& cgroup) { return cgroup.path.text.starts_with("/" + std::string(kScratchName)); }

Result<bool> root_refuses_some(const Cgroup& root) {
  const ScratchChild child = TRY(ScratchChild::make(root));
  TRY(child.write("devices.deny", "a"));
  for (const char* everything : {"c *:* rwm", "b *:* rwm"}) {
    const Result<void> granted = child.write("devices.allow", everything);
    if (!granted && granted.error().code == std::errc::operation_not_permitted) {
      return true;
    }
    TRY(Result<void>(granted));
  }
  return false;
}

}  // namespace hf::kernel
