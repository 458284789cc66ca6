// A runtime that exits at once, so that the measured cost of a call is that of holdfast-runtime alone.
#include <sys/syscall.h>

extern "C" [[noreturn]] void _start() {
  for (;;) {
#if defined(__x86_64__)
    asm volatile("syscall" : : "a"(SYS_exit_group), "D"(0) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number asm("x8") = SYS_exit_group;
    register long code asm("x0") = 0;
    asm volatile("svc 0" : : "r"(number), "r"(code) : "memory");
#endif
  }
}
