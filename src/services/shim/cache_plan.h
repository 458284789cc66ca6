// CachePlan: how the loader of a container's image gets to know the driver's libraries: by symlinks and by an edited
// cache, or by the hook, which runs ldconfig in the container.
#pragma once

#include "adapters/nvidia/hook_options.h"
#include "kernel/files/host.h"
#include "services/shim/root_files.h"

namespace hf::shim {

inline constexpr const char* kEtc = "/etc";
inline constexpr const char* kCacheName = "ld.so.cache";

// Adds links, the cache, and the reasons for the hook. Changes nothing, and executes nothing of the image. What is read
// of it is limited, because its author may have made it to be slow: then the hook, which has a deadline, does the rest.
void plan_cache(const kernel::Host& host, int root, const nvidia::HookOptions& options, const RootInput& input,
                RootPlan& plan);

}  // namespace hf::shim
