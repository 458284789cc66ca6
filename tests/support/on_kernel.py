#!/usr/bin/env python3
"""on_kernel.py COMMAND…: runs a test on the real kernel; exit 77 (skipped) if the kernel loads no programs any more.

A kernel can deadlock in its BPF JIT (seen on 6.18: a flood of program loads fills the workqueue that frees them, and the
loader waits for that workqueue). From then on every BPF program and every seccomp filter, and so every container runtime,
waits for ever in a state that no signal ends. A child with a deadline checks this once per boot.
"""

import ctypes
import os
import pathlib
import struct
import sys
import time

MARK = pathlib.Path("/run/lock/holdfast-test-kernel-is-stuck")
BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id")
TIMEOUT = 60  # seconds
SKIPPED = 77


def install_filter() -> None:
    """A seccomp filter that allows everything: the kernel compiles it as it compiles BPF programs."""
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    libc.prctl(22, 2, program)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def is_stuck() -> bool:
    boot = BOOT.read_text()
    if MARK.exists() and MARK.read_text() == boot:
        return True
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in range(3):  # a reader that waits for the end of our output must not wait for this child
            os.dup2(nothing, file)
        install_filter()
        os._exit(0)
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0] == child:
            return False
        time.sleep(0.01)
    try:
        MARK.write_text(boot)
    except OSError:
        pass  # then the next test checks again
    return True


def main() -> None:
    if is_stuck():
        print("skipped: this kernel loads no BPF programs and no seccomp filters any more (a deadlock; only a reboot helps)")
        sys.stdout.flush()
        os._exit(SKIPPED)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
