#include "kernel/container/minimal_container.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/fd.h"
#include "kernel/files/file.h"
#include "kernel/process/arguments.h"

namespace hf::kernel {
namespace {

constexpr unsigned long kNamespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;

struct StandardNode {
  const char* name;
  unsigned minor;
};
constexpr std::array<StandardNode, 5> kStandardNodes = {
    {{"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}}};

Result<void> mount_at(const char* source, const std::string& target, const char* type, unsigned long flags,
                      const char* options) {
  if (::mount(source, target.c_str(), type, flags, options) < 0) {
    return fail_errno(errno, "mount " + target);
  }
  return {};
}

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? fail(std::errc(error.value()), "make " + path + ": " + error.message()) : Result<void>();
}

Result<void> bind_file(const std::string& root, const BoundFile& file) {
  const std::string target = root + file.path;
  TRY(make_directory(target.substr(0, target.rfind('/'))));
  const Fd made(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!made) {
    return fail_errno(errno, "make " + target);
  }
  TRY(mount_at(file.source.c_str(), target, nullptr, MS_BIND, nullptr));
  const bool is_read_only = file.use == BoundFile::Use::read_only;
  return is_read_only ? mount_at(nullptr, target, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) : Result<void>();
}

Result<void> fill_root(const MinimalContainer& wanted) {
  const std::string& root = wanted.root;
  TRY(mount_at(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
  TRY(mount_at("tmpfs", root, "tmpfs", MS_NOSUID, "mode=755"));
  TRY(make_directory(root + "/dev"));
  TRY(make_directory(root + "/proc"));
  TRY(mount_at("proc", root + "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, nullptr));
  for (const StandardNode& node : kStandardNodes) {
    const std::string path = root + "/dev/" + node.name;
    if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(1, node.minor)) < 0) {
      return fail_errno(errno, "make " + path);
    }
  }
  for (const BoundFile& file : wanted.files) {
    TRY(bind_file(root, file));
  }
  return {};
}

Result<void> enter_root(const std::string& root) {
  const bool entered = ::chdir(root.c_str()) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
                       ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0;
  return entered ? Result<void>() : fail_errno(errno, "enter " + root);
}

Result<void> enter(const MinimalContainer& wanted) {
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  TRY(fill_root(wanted));
  for (const Cgroup* cgroup : wanted.cgroups) {
    TRY(write_text(cgroup->directory.get(), "cgroup.procs", "0"));
  }
  TRY(enter_root(wanted.root));
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) {
    return fail_errno(errno, "open /dev/null");
  }
  ::dup2(wanted.input >= 0 ? wanted.input : null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  const Arguments arguments(wanted.arguments);
  std::array<char*, 1> environment = {nullptr};
  ::execve(arguments.program(), arguments.get(), environment.data());
  return fail_errno(errno, "start " + wanted.arguments.front());
}

// The path of the program's loader; "" where it needs none.
std::string loader_of(const dl_phdr_info& program) {
  for (std::size_t i = 0; i < program.dlpi_phnum; ++i) {
    if (program.dlpi_phdr[i].p_type == PT_INTERP) {
      // The kernel has mapped it into our memory, and only its address is known.
      return reinterpret_cast<const char*>(program.dlpi_addr + program.dlpi_phdr[i].p_vaddr);  // NOLINT
    }
  }
  return {};
}

struct Loaded {
  std::string loader;
  std::vector<std::string> libraries;
  bool is_first = true;
};

int collect_loaded(dl_phdr_info* info, std::size_t /*size*/, void* into) {
  auto& loaded = *static_cast<Loaded*>(into);
  const std::string name = info->dlpi_name;
  if (std::exchange(loaded.is_first, false)) {
    loaded.loader = loader_of(*info);
  } else if (name.starts_with('/')) {
    loaded.libraries.push_back(name);
  }
  return 0;
}

}  // namespace

Result<container::Pid> start_minimal_container(const MinimalContainer& wanted) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    return fail_errno(errno, "make a pipe");
  }
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const auto pid = pid_t(::syscall(SYS_clone, kNamespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid < 0) {
    return fail_errno(errno, "make namespaces");
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string why = enter(wanted).error().message;  // it returns only if it fails
    ::_exit(::write(theirs.get(), why.data(), why.size()) < 0 ? 2 : 1);
  }
  theirs = Fd();
  std::array<char, 1024> message{};
  const ssize_t count = ::read(ours.get(), message.data(), message.size());  // 0 once the program has started
  if (count > 0) {
    (void)::waitpid(pid, nullptr, 0);
    return fail(std::errc::io_error, std::string(message.data(), std::size_t(count)));
  }
  return container::Pid{pid};
}

Result<OwnProgram> own_program_in(const std::string& directory) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return fail(std::errc(error.value()), "find our own program: " + error.message());
  }
  Loaded loaded;
  ::dl_iterate_phdr(collect_loaded, &loaded);
  OwnProgram program;
  const std::string place = directory + "/" + std::string(base_name(self));
  program.files.push_back({self, place});
  for (const std::string& library : loaded.libraries) {
    program.files.push_back({library, directory + "/" + std::string(base_name(library))});
  }
  if (!loaded.loader.empty()) {
    program.files.push_back({loaded.loader, directory + "/loader"});
    program.arguments = {directory + "/loader", "--library-path", directory};
  }
  program.arguments.push_back(place);
  return program;
}

}  // namespace hf::kernel
