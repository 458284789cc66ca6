// holdfast-runtime: an OCI runtime that completes a container's spec and executes runc or crun; also its own hook.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "services/shim/hook.h"
#include "services/shim/serve.h"

#ifdef HOLDFAST_SANITIZE
// The hook runs with the /proc of another namespace, and a process that executes another program cannot leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)
#endif

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  try {
    const bool is_hook = !arguments.empty() && arguments.front() == "hook";
    return is_hook ? hf::shim::serve_hook({arguments.begin() + 1, arguments.end()}) : hf::shim::serve(arguments);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "holdfast-runtime: %s\n", error.what());
    return 1;
  }
}
