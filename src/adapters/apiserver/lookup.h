// Lookup: the addresses of a name, from a resolver that may hang for a minute and cannot be cancelled.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "core/base/result.h"
#include "kernel/net/stream.h"

namespace hf::apiserver {

using Addresses = boost::asio::ip::tcp::resolver::results_type;
using Resolve = std::function<Addresses(const std::string& host, const std::string& port, boost::system::error_code&)>;

Addresses ask_resolver(const std::string& host, const std::string& port, boost::system::error_code& error);

struct LookupLimits {
  const std::atomic<bool>& is_cancelled;  // read every few milliseconds
  kernel::Clock::time_point deadline;
};

// Asks in a thread that outlives this call if it must. There is one such thread at most: others wait for its end.
Result<Addresses> look_up(const std::string& host, const std::string& port, const LookupLimits& limits,
                          Resolve resolve = ask_resolver);

}  // namespace hf::apiserver
