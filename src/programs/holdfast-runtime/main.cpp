// holdfast-runtime: an OCI runtime that completes a container's spec and executes runc or crun; also its own hook.
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "services/shim/hook.h"
#include "services/shim/serve.h"

#ifdef HOLDFAST_SANITIZE
// The hook runs with the /proc of another namespace, and a process that executes another program cannot leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)
#endif

namespace hf::programs {
namespace {

// docker offers --gpus where it finds a program of this name, and makes it a hook of containers that ask for GPUs. Our
// runtime gives them their GPUs and drops the hook, so that it only runs below another runtime.
constexpr std::string_view kDockersHook = "nvidia-container-runtime-hook";

int refuse_as_dockers_hook(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "prestart") {
    return 0;
  }
  (void)kernel::read_input();  // where no process reads it, crun says "broken pipe" instead of what follows
  (void)std::fputs(
      "holdfast: --gpus needs the runtime holdfast: docker run --runtime holdfast --gpus …, or for all containers "
      "holdfast setup docker --default && systemctl reload docker\n",
      stderr);
  return 1;
}

int run(std::span<char* const> argv) {
  const std::vector<std::string> arguments(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
  const std::string_view name = argv.empty() ? std::string_view() : base_name(argv[0]);
  if (name == kDockersHook) {
    return refuse_as_dockers_hook(arguments);
  }
  try {
    const bool is_hook = !arguments.empty() && arguments.front() == "hook";
    return is_hook ? shim::serve_hook({arguments.begin() + 1, arguments.end()}) : shim::serve(arguments);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "holdfast-runtime: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace hf::programs

int main(int argc, char** argv) { return hf::programs::run({argv, std::size_t(argc)}); }
