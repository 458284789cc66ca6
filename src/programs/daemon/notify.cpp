#include "programs/daemon/notify.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/fd.h"

namespace hf::programs {

void notify(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): the environment is never changed
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path == nullptr ? "" : path;
  if (name.empty() || name.size() >= sizeof(address.sun_path) || (name[0] != '/' && name[0] != '@')) {
    return;
  }
  std::ranges::copy(name, address.sun_path);
  if (name[0] == '@') {
    address.sun_path[0] = '\0';  // an abstract socket
  }
  const kernel::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return;
  }
  const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + name.size());
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds most) {
  const char* microseconds = std::getenv("WATCHDOG_USEC");  // NOLINT(concurrency-mt-unsafe)
  const char* pid = std::getenv("WATCHDOG_PID");            // NOLINT(concurrency-mt-unsafe)
  if (microseconds == nullptr || (pid != nullptr && std::to_string(::getpid()) != pid)) {
    return most;
  }
  constexpr std::uint64_t kOften = 3'000;  // three times in that time
  const std::chrono::milliseconds expected(parse_number<std::uint64_t>(microseconds).value_or(0) / kOften);
  return expected.count() > 0 ? std::min(expected, most) : most;
}

}  // namespace hf::programs
