// BareCall: calls of the kernel for the time before there is a C library (core/base/bare.h): no errno, no thread.
#pragma once

#include <cstddef>
#include <span>

#include <sys/stat.h>

namespace hf::kernel {

bool bare_stat(const char* path, struct stat& status);  // follows links
bool bare_access(const char* path, int mode);

// The start of a file, as much as there is room for, and its size: 0 where it cannot be opened, -1 where it cannot be
// read.
long bare_read(const char* path, std::span<char> into);

// Comes back only if it fails.
void bare_exec(const char* program, char** words, char** environment);

}  // namespace hf::kernel
