// Notify: reports our state to the service manager (sd_notify's protocol).
#pragma once

#include <chrono>
#include <string>

namespace hf::programs {

// Sends a datagram to the socket in $NOTIFY_SOCKET; does nothing if that is not set.
void notify(const std::string& state);

// How often the service manager expects WATCHDOG=1; 0 if it does not.
std::chrono::milliseconds watchdog_interval();

}  // namespace hf::programs
