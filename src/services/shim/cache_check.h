// CacheCheck: does the loader's cache of a container know the driver's libraries already? It does where the container
// was started before, and to write it again means to look into every library of the image.
#pragma once

#include <string>

#include "services/shim/hook.h"

namespace hf::shim {

// True only where writing it again would change nothing that counts: each of the driver's libraries that lies in one of
// the folders is in it, by its own name or by that of a link of ours, and neither the folders nor what ldconfig is told
// (/etc/ld.so.conf) have changed since.
bool is_cache_current(int root, const HookWords& words);

}  // namespace hf::shim
