// Writer: identifies the process that changed something, as far as /proc still knows it.
#pragma once

#include "core/container/guard/event.h"
#include "kernel/files/host.h"

namespace hf::host {

// Adds what the kernel's event did not contain: program, command line, parents, the service it works for. A process in
// a container is only named: it could make a read of its memory hang.
void identify(const kernel::Host& host, container::Writer& writer);

}  // namespace hf::host
