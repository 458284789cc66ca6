#include "adapters/journal/run_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "kernel/files/fd.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::journal {

Result<void> write_run_file(const kernel::Host& host, const std::string& name, const std::string& text) {
  constexpr const char* kDirectory = "run/holdfast";
  if (::mkdirat(host.root.get(), kDirectory, 0755) < 0 && errno != EEXIST) {
    return fail_errno(errno, std::string("make /") + kDirectory);
  }
  const kernel::Fd directory = TRY(kernel::open_plain_directory(host.root.get(), kDirectory));
  return kernel::replace_file(directory.get(), name, {text});
}

bool is_running(const kernel::Host& host, container::Pid pid, std::int64_t started_ticks) {
  const Result<kernel::Process> process = kernel::read_process(host, pid);
  return process && process->started_at == started_ticks && !process->has_ended;
}

}  // namespace hf::journal
