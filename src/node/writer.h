// Writer: what /proc still knows of the one who changed something.
#pragma once

#include "core/container/event.h"
#include "kernel/host.h"

namespace hf::node {

// Fills in what the kernel did not tell in passing: program, command line, parents, the service it works for. A process
// that sits in a container is only named: to read its memory could be made to hang.
void identify(const kernel::Host& host, container::Writer& writer);

}  // namespace hf::node
