#!/usr/bin/env python3
"""The host's ldconfig is dynamically linked, and the image has the interpreter that the kernel loads for it.

The attacker is the author of an image whose /lib64/ld-linux… is a program of its own. A hook that runs the host's
ldconfig in the image's root directory would execute it as root, before the container has any restriction. No code of
the image may run before the container's own process; the same holds for an ldconfig that is a script, and for
programs called ldconfig in the image.
"""

import contextlib
import ctypes
import os
import subprocess
import unittest

from attack_support import Box, RuntimeCase, compile_c, which
from gpu_stage import Branch
from support import run_suite

# Needs no C library: the kernel starts it instead of the loader.
INTERPRETER = r"""
static long call(long number, const void* a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}
void _start(void) {
  const long file = call(2, "/ran", 0101, 0644);
  call(1, (const void*)file, (long)"here", 4);
  call(60, (const void*)0, 0, 0);
}
"""
SCRIPT = "#!/bin/busybox sh\n/bin/busybox touch /ran\n"
PLACES = ("/sbin/ldconfig.real", "/usr/sbin/ldconfig.real", "/sbin/ldconfig", "/usr/sbin/ldconfig")
LIBC = ctypes.CDLL(None, use_errno=True)


class ExecWatch:
    """fanotify on one file: whether any process, in any namespace or sandbox, had the kernel open it to execute it."""

    def __init__(self, file: os.PathLike):
        close_on_exec, non_blocking, add, open_exec, here = 1, 2, 1, 0x1000, -100
        self.queue = LIBC.fanotify_init(close_on_exec | non_blocking, os.O_RDONLY)
        if LIBC.fanotify_mark(self.queue, add, ctypes.c_uint64(open_exec), here, os.fsencode(file)) != 0:
            raise unittest.SkipTest(f"fanotify cannot watch for executions here: {os.strerror(ctypes.get_errno())}")

    def is_executed(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return len(os.read(self.queue, 24)) > 0
        return False


class Interpreter(RuntimeCase):
    def setUp(self) -> None:
        super().setUp()
        if os.uname().machine != "x86_64":
            self.skipTest("the image's interpreter is written for x86-64")

    def hostile_image(self) -> Box:
        box = self.image()
        loader = box.directory / "rootfs/lib64/ld-linux-x86-64.so.2"
        compile_c(INTERPRETER, loader, "-static", "-nostdlib", "-ffreestanding", "-O1")
        self.watch = ExecWatch(loader)
        self.addCleanup(os.close, self.watch.queue)
        return box

    def with_ldconfig(self, box: Box, program: os.PathLike) -> Branch:
        """The same host with another ldconfig."""
        existing = [place for place in PLACES if os.path.exists(place)]
        return self.enterContext(box.stage.changed(*(f"mount --bind {program} {place}" for place in existing)))

    def check_not_run(self, box: Box, why: str) -> None:
        self.assertFalse((box.directory / "rootfs/ran").exists(), why)
        self.assertFalse(self.watch.is_executed(), why)

    def test_a_dynamically_linked_ldconfig(self):
        box = self.hostile_image()
        program = box.directory / "ldconfig"
        compile_c("int main(void) { return 0; }", program)
        box.place = self.with_ldconfig(box, program)
        done = self.attempt(box)
        self.check_not_run(box, done.stderr)

    def test_the_attack_works_in_a_plain_chroot(self):
        """Proves that the image's interpreter would run."""
        box = self.hostile_image()
        program = box.directory / "rootfs/dynamic"
        compile_c("int main(void) { return 0; }", program)
        subprocess.run(["chroot", box.directory / "rootfs", "/dynamic"], check=False, timeout=60)
        self.assertTrue((box.directory / "rootfs/ran").exists())
        self.assertTrue(self.watch.is_executed())

    def test_an_ldconfig_that_is_a_script(self):
        box = self.hostile_image()
        program = box.directory / "ldconfig"
        program.write_text(SCRIPT)
        program.chmod(0o755)
        box.place = self.with_ldconfig(box, program)
        done = self.attempt(box)
        self.check_not_run(box, done.stderr)

    def test_an_ldconfig_of_the_image(self):
        box = self.hostile_image()
        for place in PLACES:
            file = box.directory / "rootfs" / place.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(SCRIPT)
            file.chmod(0o755)
        box.start()
        self.check_not_run(box, "a program of the image ran")
        self.check_gpu(box)

    def test_a_static_ldconfig_writes_the_cache(self):
        if b"ld-linux" in subprocess.run(["readelf", "-l", which("ldconfig")], capture_output=True, check=False).stdout:
            self.skipTest("the ldconfig of this host is dynamically linked")
        box = self.hostile_image().start()
        self.check_not_run(box, "the image's interpreter ran")
        self.check_gpu(box)


if __name__ == "__main__":
    run_suite()
