// What the programs with a command line include, compiled once.
#pragma once

#include <CLI/CLI.hpp>

#include "headers.h"
