// Notify: reports our state to the service manager (sd_notify's protocol).
#pragma once

#include <chrono>
#include <string>

namespace hf::programs {

// Sends a datagram to the socket in $NOTIFY_SOCKET; does nothing if that is not set.
void notify(const std::string& state);

// How often to send WATCHDOG=1, at most this: the service manager may expect it more often.
std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds most);

}  // namespace hf::programs
