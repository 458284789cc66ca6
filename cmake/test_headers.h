// What most tests include, compiled once.
#pragma once

#include <gtest/gtest.h>

#include "headers.h"
