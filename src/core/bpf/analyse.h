// Analyse: turns a device filter's code into the exact table of its meaning, or Opaque with the reason. Never a guess.
#pragma once

#include "core/bpf/instruction.h"
#include "core/device/table.h"

namespace hf::bpf {

// What the program lets through of the requests that the programs before it let through.
Readable<device::Table> analyse(const Code& code, const CallNames& names = {});

// What it lets through although a program before it refused: nothing, unless it calls bpf_set_retval.
Readable<device::Table> analyse_overrides(const Code& code, const CallNames& names = {});

// Like analyse, for the requests of a table only: a program that is opaque as a whole may be clear about these.
Readable<device::Table> analyse_within(const Code& code, const device::Table& requests);

}  // namespace hf::bpf
