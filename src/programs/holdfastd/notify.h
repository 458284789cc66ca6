// Notify: telling the service manager how we are (sd_notify's protocol).
#pragma once

#include <chrono>
#include <string>

namespace hf::programs {

// A datagram to the socket in $NOTIFY_SOCKET; nothing where there is none.
void notify(const std::string& state);

// How often the service manager wants to hear WATCHDOG=1; 0 where it does not.
std::chrono::milliseconds watchdog_interval();

}  // namespace hf::programs
