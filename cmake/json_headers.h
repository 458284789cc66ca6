// What most renderers and adapters include, compiled once.
#pragma once

#include <nlohmann/json.hpp>

#include "headers.h"
