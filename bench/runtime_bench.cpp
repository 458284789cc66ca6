// What holdfast-runtime adds to the runtime it executes: medians of interleaved calls, as ratios to plain runc.
//
//   passed on       commands that holdfast-runtime only forwards, without a config file and with one about the runtime
//   create          a container without a GPU, and one with two fake GPUs: against plain runc with the same container
//                   without GPUs, and with the spec that was edited before. With what CUDA images ask for (compute,
//                   utility: 5 device nodes, 19 files of the driver), and with all of its files (41). In a root file
//                   system that is new each time, as engines make it for a new container; in the same one again, as
//                   `docker start` does; and in one with 3,000 libraries
//   alone           the same with a runtime that does nothing: wall time, memory and page faults are ours
//   cdi generate    of holdfast, if it has that command
//
// The GPUs, their driver and its config are faked in a mount namespace of our own, which ends with this process.
//
// usage: holdfast_runtime_bench [--rounds N]   (root)
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/files/clock.h"

namespace hf {
namespace {

using Command = std::vector<std::string>;

std::string g_directory;  // temporary; a tmpfs is mounted on it in our mount namespace

void clear() {
  if (!g_directory.empty()) {
    (void)::umount2(g_directory.c_str(), MNT_DETACH);
    (void)::rmdir(g_directory.c_str());
  }
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "runtime_bench: %s\n", why.c_str());
  clear();
  std::exit(2);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) {
    die("write " + path);
  }
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Cost {
  double wall = 0;    // milliseconds
  double cpu = 0;     // milliseconds
  double memory = 0;  // MiB at most
  double faults = 0;
  int code = 0;
};

Cost call(const Command& command) {
  const std::uint64_t began = kernel::monotonic_now();
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      (void)::dup2(nowhere, fd);
    }
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  rusage used{};
  if (::wait4(child, &status, 0, &used) < 0) {
    die("wait for " + command[0]);
  }
  const auto milliseconds = [](const timeval& time) { return double(time.tv_sec) * 1e3 + double(time.tv_usec) / 1e3; };
  return {double(kernel::monotonic_now() - began) / 1e6, milliseconds(used.ru_utime) + milliseconds(used.ru_stime),
          double(used.ru_maxrss) / 1024, double(used.ru_minflt), WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

void shell(const std::string& script) {
  if (call({"sh", "-ec", script}).code != 0) {
    die("cannot set up the test environment: " + script);
  }
}

// One line of a table.
struct Row {
  std::string name;
  std::size_t base = 0;  // index of the row that its ratio refers to
  Command command;
  int code = 0;                    // the exit status it must have
  std::function<void()> before{};  // not measured
  std::function<void()> after{};   // not measured
  std::size_t same_spec = 0;       // index of a row that starts the same container; 0: none
  std::vector<Cost> costs{};
};

double median(const Row& row, double Cost::* part) {
  std::vector<double> all;
  for (const Cost& cost : row.costs) {
    all.push_back(cost.*part);
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

void measure(const char* title, int rounds, std::vector<Row> rows) {
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    for (Row& row : rows) {
      if (row.before) {
        row.before();
      }
      const Cost cost = call(row.command);
      if (cost.code != row.code) {
        die(row.name + " ends with " + std::to_string(cost.code) + ", not " + std::to_string(row.code));
      }
      if (row.after) {
        row.after();
      }
      if (round >= 0) {
        row.costs.push_back(cost);
      }
    }
  }
  const bool compares_specs = std::ranges::any_of(rows, [](const Row& row) { return row.same_spec != 0; });
  std::printf("%-44s %9s %7s %9s %9s %8s %s  (%d rounds)\n", title, "wall ms", "ratio", "cpu ms", "RSS MiB", "faults",
              compares_specs ? "  to runc with the same spec" : "", rounds);
  for (const Row& row : rows) {
    const double wall = median(row, &Cost::wall);
    std::printf("  %-42s %9.2f %7.2f %9.2f %9.1f %8.0f", row.name.c_str(), wall,
                wall / median(rows[row.base], &Cost::wall), median(row, &Cost::cpu), median(row, &Cost::memory),
                median(row, &Cost::faults));
    if (row.same_spec != 0) {
      std::printf(" %9.2f", wall / median(rows[row.same_spec], &Cost::wall));
    }
    std::puts("");
  }
  std::fflush(stdout);
}

// ---- The test environment ------------------------------------------------------------------------------------------

constexpr const char* kSetup = R"sh(
mount --make-rprivate /
mount -t tmpfs -o mode=755 none $F
cp -a /etc $F/etc
mount --bind $F/etc /etc
rm -rf /etc/holdfast /etc/cdi
mkdir -p /etc/holdfast $F/driver/nvidia/capabilities $F/root/usr/lib/x86_64-linux-gnu $F/root/usr/bin $F/dev
version=550.54.15
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $version  Tue Mar  5" >$F/driver/nvidia/version
printf 'ModifyDeviceFiles: 1\nDeviceFileMode: 438\n' >$F/driver/nvidia/params
for gpu in 0 1; do
  mkdir -p $F/driver/nvidia/gpus/0000:6$gpu:00.0
  printf "GPU UUID: \t GPU-1111111$gpu-2222-3333-4444-555555555555\nBus Location: \t 0000:6$gpu:00.0\nDevice Minor: \t $gpu\n" \
    >$F/driver/nvidia/gpus/0000:6$gpu:00.0/information
done
mkdir $F/driver/nvidia-caps
seq 4322 | sed 's|.*|gpu&/gi0/access &|' >$F/driver/nvidia-caps/mig-minors
sed 's/^Block devices:/195 nvidia\n511 nvidia-uvm\n\n&/' /proc/devices >$F/devices
mount --bind $F/driver /proc/driver
mount --bind $F/devices /proc/devices
libraries=$F/root/usr/lib/x86_64-linux-gnu
# The files of NVIDIA's driver 550.
compute="cuda cudadebugger nvidia-nvvm nvidia-opencl nvidia-pkcs11 nvidia-pkcs11-openssl3 nvidia-ptxjitcompiler nvidia-allocator"
graphics="EGL_nvidia GLESv1_CM_nvidia GLESv2_nvidia GLX_nvidia nvidia-eglcore nvidia-fbc nvidia-glcore nvidia-glsi nvidia-glvkspirv
  nvidia-rtcore nvidia-tls nvoptix"
for name in $compute nvidia-cfg nvidia-ml nvidia-nscq nvidia-gpucomp $graphics nvcuvid nvidia-encode nvidia-opticalflow vdpau_nvidia \
    nvidia-gtk2 nvidia-gtk3 nvidia-wayland-client nvidia-ngx; do
  cp /bin/true $libraries/lib$name.so.$version
  ln -s lib$name.so.$version $libraries/lib$name.so.1
done
for name in nvidia-egl-gbm.so.1.1.1 nvidia-egl-wayland.so.1.1.13; do cp /bin/true $libraries/lib$name; done
for name in smi debugdump persistenced cuda-mps-control cuda-mps-server; do cp /bin/true $F/root/usr/bin/nvidia-$name; done
mkdir -p $F/root/lib/firmware/nvidia/$version
touch $F/root/lib/firmware/nvidia/$version/gsp_ga10x.bin $F/root/lib/firmware/nvidia/$version/gsp_tu10x.bin
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty $F/dev/
mount --bind $F/dev /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
for node in "nvidia0 195 0" "nvidia1 195 1" "nvidiactl 195 255" "nvidia-uvm 511 0" "nvidia-uvm-tools 511 1"; do
  set -- $node
  mknod -m 666 /dev/$1 c $2 $3
done
mount -t tmpfs -o mode=755 none /run
mkdir /run/bundle /run/runc-that-does-nothing $F/rootfs
for directory in bin dev etc proc sys tmp; do mkdir $F/rootfs/$directory; done
cp "$(command -v busybox)" $F/rootfs/bin/
# An image as they are: a loader, its cache, libraries. The large one has 3,000.
mkdir -p $F/rootfs/lib64 $F/rootfs/usr/lib/x86_64-linux-gnu
cp -L /lib64/ld-linux-x86-64.so.2 $F/rootfs/lib64/
cp /bin/true $F/rootfs/usr/lib/x86_64-linux-gnu/libimage0.so.1
echo /usr/lib/x86_64-linux-gnu >$F/rootfs/etc/ld.so.conf
cp -a $F/rootfs $F/large
for number in $(seq 2999); do ln $F/large/usr/lib/x86_64-linux-gnu/libimage0.so.1 $F/large/usr/lib/x86_64-linux-gnu/libimage$number.so.1; done
ldconfig -X -r $F/rootfs
ldconfig -X -r $F/large
)sh";

void set_up_environment() {
  g_directory = "/tmp/hf-bench-XXXXXX";
  if (::mkdtemp(g_directory.data()) == nullptr || ::unshare(CLONE_NEWNS) < 0) {
    die(std::string("a mount namespace of our own: ") + std::strerror(errno));
  }
  shell("F=" + g_directory + kSetup);
}

// The root file system of a new container: the image, and an empty layer over it.
void mount_new_root(const std::string& image) {
  const std::string root = g_directory + "/new";
  const std::string upper = g_directory + "/upper";
  const std::string work = g_directory + "/work";
  (void)::umount2(root.c_str(), MNT_DETACH);
  for (const std::string& directory : {upper, work}) {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
  }
  std::filesystem::create_directories(root);
  const std::string options = "lowerdir=" + g_directory + "/" + image + ",upperdir=" + upper + ",workdir=" + work;
  if (::mount("overlay", root.c_str(), "overlay", 0, options.c_str()) < 0) {
    die(std::string("mount an overlay: ") + std::strerror(errno));
  }
}

constexpr const char* kConfig = "/etc/holdfast/config.yaml";

// The one that packages install, with another driver_root.
void set_config() {
  constexpr std::string_view kDriverRoot = "# driver_root: /run/nvidia/driver";
  std::string text = read_file(HOLDFAST_CONFIG);
  const std::size_t at = text.find(kDriverRoot);
  if (at == std::string::npos) {
    die("the config has no driver_root");
  }
  write_file(kConfig, text.replace(at, kDriverRoot.size(), "driver_root: " + g_directory + "/root"));
}

void remove_config() { (void)::unlink(kConfig); }

const std::string kAllGpus = "NVIDIA_VISIBLE_DEVICES=all";
const std::string kAllCapabilities = R"(","NVIDIA_DRIVER_CAPABILITIES=all)";
// Docker's containers have it.
constexpr const char* kMayMakeNodes =
    R"(,"capabilities":{"bounding":["CAP_MKNOD"],"effective":["CAP_MKNOD"],"permitted":["CAP_MKNOD"]})";

std::string spec_of(const std::string& name, const std::string& variable, const std::string& root = "new",
                    const std::string& capabilities = "") {
  return R"({"ociVersion":"1.0.2","process":{"cwd":"/","args":["/bin/busybox","sleep","600"],"env":["PATH=/bin")" +
         (variable.empty() ? "" : ",\"" + variable + "\"") + R"(],"user":{"uid":0,"gid":0})" + capabilities +
         R"(},"root":{"path":")" + g_directory + "/" + root +
         R"("},"mounts":[{"destination":"/proc","type":"proc","source":"proc"},)" +
         R"({"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755"]}],)" +
         R"("linux":{"cgroupsPath":"/)" + name + R"(","namespaces":[{"type":"mount"},{"type":"pid"},{"type":"ipc"},)" +
         R"({"type":"uts"}],"resources":{"devices":[{"allow":false,"access":"rwm"}]}}})";
}

// ---- What is measured ----------------------------------------------------------------------------------------------

constexpr const char* kBundle = "/run/bundle";
constexpr const char* kSpec = "/run/bundle/config.json";

class Bench {
 public:
  explicit Bench(int rounds) : rounds_(rounds), name_("hf-bench-" + std::to_string(::getpid())) {}

  void run() {
    pass_on();
    set_config();
    create("rootfs", "create, in a new root file system");
    create_again();
    create("large", "create, in a new one with 3,000 libraries");
    alone();
    generate();
  }

 private:
  void pass_on() {
    measure("passed on", rounds_ * 5,
            {{"runc state nonexist", 0, {"runc", "state", "nonexist"}, 1},
             {"holdfast-runtime state nonexist", 0, {kShim, "state", "nonexist"}, 1, remove_config},
             {"holdfast-runtime state nonexist, with config", 0, {kShim, "state", "nonexist"}, 1, set_config},
             {"runc --version", 3, {"runc", "--version"}},
             {"holdfast-runtime --version", 3, {kShim, "--version"}, 0, remove_config}});
  }

  [[nodiscard]] Row row_of(const std::string& title, std::size_t base, const std::string& program,
                           const std::string& spec) const {
    return {title, base, {program, "create", "--bundle", kBundle, name_}, 0, [spec] { write_file(kSpec, spec); }};
  }

  void create(const std::string& image, const char* title) {
    const std::string plain = spec_of(name_, "");
    const std::string asks = spec_of(name_, kAllGpus);
    const std::string asks_for_all = spec_of(name_, kAllGpus + kAllCapabilities);
    const std::string edited = finished_spec(image, asks);
    std::vector<Row> rows = {
        row_of("runc, no GPU", 0, "runc", plain),
        row_of("holdfast-runtime, no GPU", 0, kShim, plain),
        row_of("runc, with the finished spec", 0, "runc", edited),
        row_of("holdfast-runtime, 2 GPUs", 0, kShim, asks),
        row_of("runc, with all of the driver's files", 0, "runc", finished_spec(image, asks_for_all)),
        row_of("holdfast-runtime, all of the driver's files", 0, kShim, asks_for_all),
        row_of("1 of 2 GPUs, with CAP_MKNOD", 0, kShim,
               spec_of(name_, "NVIDIA_VISIBLE_DEVICES=0", "new", kMayMakeNodes)),
        row_of("runc, with a hook that runs ldconfig", 0, "runc", with_hook(edited))};
    rows[3].same_spec = 2;
    rows[5].same_spec = 4;
    for (Row& row : rows) {
      row.before = [image, write = row.before] {
        mount_new_root(image);
        write();
      };
      row.after = [this] { remove(); };
    }
    measure(title, rounds_, std::move(rows));
    std::puts("  (NVIDIA container toolkit 1.20 on another machine: no GPU 1.20 to 1.38, one GPU 3.00 to 3.33)\n");
  }

  // A container that is started again: its root file system has what the first start wrote.
  void create_again() {
    const std::string plain = spec_of(name_, "", "rootfs");
    const std::string asks = spec_of(name_, kAllGpus, "rootfs");
    std::vector<Row> rows = {row_of("runc, no GPU", 0, "runc", plain),
                             row_of("holdfast-runtime, 2 GPUs", 0, kShim, asks)};
    for (Row& row : rows) {
      row.after = [this] { remove(); };
    }
    measure("create again, in the same root file system", rounds_, std::move(rows));
  }

  std::string finished_spec(const std::string& image, const std::string& asks) {
    mount_new_root(image);
    write_file(kSpec, asks);
    if (call({kShim, "create", "--bundle", kBundle, name_}).code != 0) {
      die("holdfast-runtime cannot create a container here");
    }
    remove();
    std::string spec = read_file(kSpec);
    if (spec.contains("\"hooks\"")) {
      die("the spec has a hook");
    }
    return spec;
  }

  // As it was done before: ldconfig reads every library of the image when the container is created.
  static std::string with_hook(std::string spec) {
    spec.insert(spec.rfind('}'), R"(,"hooks":{"createContainer":[{"path":")" + std::string(kShim) +
                                     R"(","args":["holdfast-runtime","hook","create-container","--directory",)" +
                                     R"("/usr/lib/x86_64-linux-gnu"],"env":["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]})");
    return spec;
  }

  void remove() const {
    (void)call({"runc", "delete", "-f", name_});
    (void)::unlink(("/run/holdfast/ledger/" + name_ + ".json").c_str());
  }

  void alone() const {
    mount_new_root("rootfs");
    const std::string plain = spec_of(name_, "");
    const std::string asks = spec_of(name_, kAllGpus);
    std::filesystem::create_symlink(HOLDFAST_NOP, "/run/runc-that-does-nothing/runc");
    ::setenv("PATH", "/run/runc-that-does-nothing", 1);
    Row without_gpu = row_of("create, no GPU", 0, kShim, plain);
    without_gpu.before = [plain] {
      write_file(kSpec, plain);
      remove_config();
    };
    Row with_gpus = row_of("create, 2 GPUs", 0, kShim, asks);
    with_gpus.before = [asks] {
      write_file(kSpec, asks);
      set_config();
    };
    Row in_new_root = row_of("create, 2 GPUs, in a new root file system", 0, kShim, asks);
    in_new_root.before = [prepare = with_gpus.before] {
      mount_new_root("rootfs");
      prepare();
    };
    with_gpus.name += ", in the same one again";
    measure("alone, with a runtime that does nothing", rounds_ * 5,
            {{"that runtime", 0, {HOLDFAST_NOP}},
             {"state", 0, {kShim, "state", "x"}, 0, remove_config},
             {"state, with config", 0, {kShim, "state", "x"}, 0, set_config},
             without_gpu,
             in_new_root,
             with_gpus});
    set_config();
    (void)::unlink(("/run/holdfast/ledger/" + name_ + ".json").c_str());
  }

  void generate() const {
    const Command command = {HOLDFAST_PROGRAM, "cdi", "generate"};
    if (call(command).code == 0) {
      measure("holdfast", rounds_, {{"cdi generate", 0, command}});
    }
  }

  static constexpr const char* kShim = HOLDFAST_RUNTIME_PROGRAM;
  int rounds_;
  std::string name_;
};

int run(int count, char** arguments) {
  int rounds = 40;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) != "--rounds" || i + 1 == count) {
      die("usage: holdfast_runtime_bench [--rounds N]");
    }
    rounds = std::atoi(arguments[++i]);
  }
  if (::geteuid() != 0 || rounds < 1) {
    die("needs root, and a round at least");
  }
  set_up_environment();
  Bench(rounds).run();
  clear();
  return 0;
}

}  // namespace
}  // namespace hf

int main(int count, char** arguments) { return hf::run(count, arguments); }
