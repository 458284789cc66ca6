// Target: the containers that a person means by a word.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/host.h"
#include "node/census.h"

namespace hf::node {

// The residents that words mean: names, ids, "container:NAME", or "pid:N" of any process in one. A word that fits none,
// or several, is an error that lists the candidates.
Result<std::vector<const Resident*>> find_residents(const kernel::Host& host, const Census& census,
                                                    const std::vector<std::string>& words);

}  // namespace hf::node
