// holdfast-runtime: an OCI runtime that completes a container's spec and becomes runc or crun; and the hook for it.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "services/shim/hook.h"
#include "services/shim/serve.h"

#if defined(__SANITIZE_ADDRESS__)
// The hook runs where /proc is another's; and whatever becomes another program has nothing to leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier)
#endif

int main(int count, char** given) {
  const std::vector<std::string> words(given + (count > 0 ? 1 : 0), given + count);
  try {
    const bool is_hook = !words.empty() && words.front() == "hook";
    return is_hook ? hf::shim::serve_hook({words.begin() + 1, words.end()}) : hf::shim::serve(words);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "holdfast-runtime: %s\n", error.what());
    return 1;
  }
}
