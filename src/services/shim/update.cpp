#include "services/shim/update.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/oci/edit_resources.h"
#include "kernel/files/file.h"
#include "services/shim/low_level.h"

namespace hf::shim {

SafeUpdate keep_devices(const std::vector<std::string>& arguments, const oci::CommandLine& line,
                        const ledger::Entry& given) {
  SafeUpdate unchanged{arguments, {}};
  if (line.resources_at == 0) {
    return unchanged;
  }
  const bool by_input = line.resources == "-";
  const Result<std::string> text = kernel::read_text(AT_FDCWD, by_input ? "/dev/stdin" : line.resources);
  std::vector<container::NodeEdit> nodes;
  nodes.reserve(given.nodes.size());
  for (const container::WantedNode& node : given.nodes) {
    nodes.push_back({.path = node.path, .device = node.claimed, .access = node.access});
  }
  const Result<std::string> safe = text ? oci::allow_in_resources(*text, nodes) : text;
  if (!text || (!by_input && (!safe || *safe == *text))) {
    return unchanged;
  }
  // For standard input the descriptor is duplicated and closed on exec, so the runtime inherits no extra file.
  kernel::Fd resources(::memfd_create("resources", by_input ? MFD_CLOEXEC : 0));
  const std::string& content = safe ? *safe : *text;
  if (!resources || ::write(resources.get(), content.data(), content.size()) != ssize_t(content.size())) {
    return unchanged;
  }
  if (by_input) {
    (void)::lseek(resources.get(), 0, SEEK_SET);
    (void)::dup2(resources.get(), STDIN_FILENO);
    return unchanged;
  }
  const std::string file = "/proc/self/fd/" + std::to_string(resources.get());
  return {oci::with_resources(arguments, line, file), std::move(resources)};
}

bool heal_container(const std::string& container, const std::string& own_program) {
  const std::string directory = own_program.substr(0, own_program.rfind('/'));
  for (const std::string& program :
       {directory + "/holdfast", std::string("/usr/bin/holdfast"), std::string("/usr/local/bin/holdfast")}) {
    if (::access(program.c_str(), X_OK) != 0) {
      continue;
    }
    const kernel::Fd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    (void)::dup2(nowhere.get(), STDIN_FILENO);
    (void)::dup2(nowhere.get(), STDOUT_FILENO);
    const Result<int> code = run_to_end(program, {"heal", container});
    return code && *code <= 1;  // 1: something is left that cannot be given back
  }
  return true;  // it is not installed
}

}  // namespace hf::shim
