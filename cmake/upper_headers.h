// What most sources above core and kernel include, compiled once.
#pragma once

#include <nlohmann/json.hpp>

#include "headers.h"
