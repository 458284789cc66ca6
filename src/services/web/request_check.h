// RequestCheck: decides which requests of a browser are answered. A browser on this host visits hostile pages as well.
#pragma once

#include <string>

#include "services/web/request.h"

namespace hf::web {

// Why a request over TCP is refused; "" if it is not. The host must be an address, localhost or this machine's name:
// any other name may have been pointed at us by an attacker (DNS rebinding). The origin must be that host, because
// scripts of other pages are not ours.
std::string why_refused(const Request& request, const std::string& own_name);

}  // namespace hf::web
