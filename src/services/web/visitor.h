// Visitor: whose page may talk to us. A browser on this machine visits hostile pages too.
#pragma once

#include <string>

#include "services/web/request.h"

namespace hf::web {

// Why a request over TCP is refused, "" where it is not. The host must be an address, localhost or this machine: any
// other name is one that somebody pointed at us (DNS rebinding). An origin must be that host: another page's script is
// not ours.
std::string why_refused(const Request& request, const std::string& own_name);

}  // namespace hf::web
