#include "kernel/bare_call.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

#if defined(__x86_64__)
long call(long number, long first, long second, long third, long fourth) {
  long result = number;  // NOLINT(misc-const-correctness): the kernel's answer is put there
  register const long last asm("r10") = fourth;
  asm volatile("syscall" : "+a"(result) : "D"(first), "S"(second), "d"(third), "r"(last) : "rcx", "r11", "memory");
  return result;
}
#else
// Elsewhere nothing of ours runs before the C library is there.
long call(long number, long first, long second, long third, long fourth) {
  return ::syscall(number, first, second, third, fourth);
}
#endif

long number_of(auto* pointer) { return reinterpret_cast<long>(pointer); }

}  // namespace

bool bare_stat(const char* path, struct stat& status) {
  return call(SYS_newfstatat, AT_FDCWD, number_of(path), number_of(&status), 0) == 0;
}

bool bare_access(const char* path, int mode) { return call(SYS_faccessat, AT_FDCWD, number_of(path), mode, 0) == 0; }

long bare_read(const char* path, std::span<char> into) {
  const long file = call(SYS_openat, AT_FDCWD, number_of(path), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) {
    return 0;
  }
  const long size = call(SYS_read, file, number_of(into.data()), long(into.size()), 0);
  call(SYS_close, file, 0, 0, 0);
  return size < 0 ? -1 : size;
}

void bare_exec(const char* program, char** words, char** environment) {
  call(SYS_execve, number_of(program), number_of(words), number_of(environment), 0);
}

}  // namespace hf::kernel
