#!/usr/bin/env python3
"""An image's environment makes the dynamic loader run the image's code in the hook, as root of the host.

The attacker is the author of an image: LD_PRELOAD, LD_AUDIT or LD_LIBRARY_PATH name libraries in it,
GLIBC_TUNABLES make every program fail. runc passes a container's environment to hooks that have none of their own, and
starts them in the container's root directory while the host's files are still there. No code of the image may run in
the hook or in the programs that it starts, and the container starts as it would without these variables.
"""

import os

from attack_support import Box, RuntimeCase, compile_c
from support import run_suite

# A constructor that leaves a mark on the host, and what a library for LD_AUDIT needs.
CODE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void leave_mark(int count, char** arguments) {
  const int is_hook = count > 1 && strcmp(arguments[1], "hook") == 0;
  const int is_ldconfig = count > 0 && strstr(arguments[0], "ldconfig") != NULL;
  char path[300];
  snprintf(path, sizeof path, "MARKS/%s", is_hook ? "hook" : is_ldconfig ? "ldconfig" : "another program");
  close(open(path, O_CREAT | O_WRONLY, 0600));
}
unsigned la_version(unsigned version) { return version; }
"""
NO_MEMORY = "glibc.malloc.top_pad=70368744177664"  # malloc asks the kernel for so much that it gets nothing
COMMON_LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6")


class LoaderVariables(RuntimeCase):
    def hostile_image(self, runtime: str) -> Box:
        box = self.image(runtime=runtime)
        evil = box.directory / "rootfs/evil"
        marks = box.directory / "marks"
        marks.mkdir()
        compile_c(CODE.replace("MARKS", str(marks)), evil / "evil.so", "-shared", "-fPIC")
        for name in COMMON_LIBRARIES:
            os.link(evil / "evil.so", evil / name)
        return box

    def marks(self, box: Box) -> set[str]:
        return set(os.listdir(box.directory / "marks"))

    def check_of_image(self, variable: str, value: str, *more: str) -> None:
        """`value` names the image's directory by {evil}: several paths lead there while the hook runs."""
        for runtime in ("runc", *more):
            with self.subTest(runtime):
                box = self.hostile_image(runtime)
                ways = ["./evil", "/proc/self/cwd/evil", f"{box.directory}/rootfs/evil"]
                text = ":".join(value.format(evil=way) for way in (ways if "{" in value else ways[:1]))
                box.spec["process"]["env"].append(f"{variable}={text}")
                done = box.write().create()
                self.assertEqual(self.marks(box), set(), "code of the image ran as root of the host")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_files(box)
                box.delete()

    def test_ld_preload_of_an_image(self):
        self.check_of_image("LD_PRELOAD", "{evil}/evil.so", "crun")

    def test_ld_audit_of_an_image(self):
        self.check_of_image("LD_AUDIT", "{evil}/evil.so")

    def test_ld_library_path_of_an_image(self):
        self.check_of_image("LD_LIBRARY_PATH", "{evil}")

    def test_glibc_tunables_of_an_image(self):
        self.check_of_image("GLIBC_TUNABLES", NO_MEMORY)

    def test_ld_audit_of_the_runtime(self):
        """The engine's environment reaches the runtime, but not its children."""
        for runtime in ("runc", "crun"):
            with self.subTest(runtime):
                box = self.hostile_image(runtime)
                done = box.create(env=os.environ | {"LD_AUDIT": f"{box.directory}/rootfs/evil/evil.so"})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.marks(box) & {"hook", "ldconfig"}, set())
                self.check_gpu(box)
                box.delete()

    def test_the_image_itself_keeps_its_variables(self):
        box = self.image()
        box.spec["process"]["env"] += ["LD_LIBRARY_PATH=/opt/lib", "LD_PRELOAD="]
        self.check_gpu(box.write().start())
        with open(f"/proc/{box.pid}/environ") as file:
            variables = file.read().split("\0")
        self.assertIn("LD_LIBRARY_PATH=/opt/lib", variables)


if __name__ == "__main__":
    run_suite()
