#!/usr/bin/env python3
"""holdfast on stock Debian kernels under qemu, on pure cgroup v2 and v1. Slow, and no part of ./test.

usage: vm_test.py [HOLDFAST] [UNITTEST ARGUMENTS]; HOLDFAST_KERNELS="6.1 /boot/vmlinuz" names the kernels.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable

from machine import HERE, Machine, Unavailable, program

KERNELS = os.environ.get("HOLDFAST_KERNELS", "5.10 6.1 6.12 newest").split()
BUILD = HERE.parent.parent / "build"

# Functions that run a process in the cgroup, check whether it may open a device (ENXIO: allowed, but without a driver), and compare.
PREAMBLE = r"""
mknod /tmp/gpu c 195 0
inside() { sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
opens() { inside sh -c ': <>"$1"' sh "$1" 2>&1 | sed 's/.*: //'; }
expect() {  # WHAT WANTED GOT
    [ "$2" = "$3" ] || { echo "FAILED: $1: expected '$2', got '$3'"; exit 1; }
    echo "$1: $3"
}
answer() { holdfast rules "cgroup:$group" --ask c:195:0:rw >/tmp/said 2>&1; echo $?; cat /tmp/said >&2; }
refused='Operation not permitted'
passed='No such device or address'
"""

GRANT_AND_REVOKE = r"""
expect 'the gate is seen' 1 "$(answer)"
expect 'refused by the gate' "$refused" "$(opens /tmp/gpu)"
holdfast grant "cgroup:$group" 'c 195:0 rw' || exit 1
expect 'the grant is seen' 0 "$(answer)"
expect 'allowed' "$passed" "$(opens /tmp/gpu)"
expect 'what the gate allowed stays' '' "$(opens /dev/null)"
expect 'what it refused stays' "$refused" "$(opens /dev/full)"
holdfast revoke "cgroup:$group" 'c 195:0 rw' || exit 1
expect 'the loss is seen' 1 "$(answer)"
expect 'refused again' "$refused" "$(opens /tmp/gpu)"
"""

GATE_V2 = r"""
group=/sys/fs/cgroup/tested
mkdir $group
bpftool prog load gate.o /sys/fs/bpf/gate || exit 1
bpftool cgroup attach $group device pinned /sys/fs/bpf/gate multi || exit 1
"""

GATE_V1 = r"""
group=/sys/fs/cgroup/devices/tested
mkdir $group
echo a >$group/devices.deny
echo 'c 1:3 rwm' >$group/devices.allow
echo 'c 1:5 rwm' >$group/devices.allow
"""

# Tests that depend on the kernel: by which means changes are detected, and the shield (skipped with a reason before 5.18).
WATCHED = r"""
./hf_kernel_tests --gtest_color=no --gtest_filter='*/tracepoints:*TakesTheBestTier*:ShieldTest.*:Differential.Orders*' 2>&1
"""

def find_holdfast() -> pathlib.Path:
    """The one named on the command line, or else the one that was built."""
    if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_file():
        return pathlib.Path(sys.argv.pop(1)).resolve()
    built = [BUILD / preset / "src/programs/holdfast/holdfast" for preset in ("release", "dev")]
    return next((path for path in built if path.exists()), built[0])


HOLDFAST = find_holdfast()
KERNEL_TESTS = BUILD / "vm/tests/kernel/hf_kernel_tests"


def compile_all(directory: pathlib.Path) -> dict[str, pathlib.Path]:
    """With Debian's headers only: there is no vmlinux.h, so the BPF programs do not depend on the kernel."""
    bpf = ["-c", "-target", "bpf", f"-I/usr/include/{os.uname().machine}-linux-gnu"]
    sources = {"gate.bpf.c": bpf}
    targets = {}
    for source, options in sources.items():
        target = directory / source.replace(".bpf.c", ".o").removesuffix(".c")
        subprocess.run([program("clang-19"), "-O2", "-g", "-Wall", HERE / source, "-o", target, *options], check=True, timeout=60)
        targets[target.name] = target
    return targets


class StockKernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        if not HOLDFAST.exists():
            raise unittest.SkipTest("holdfast is not built: ./run --version")
        try:
            cls.files = {"/usr/bin/holdfast": HOLDFAST, "/usr/bin/bpftool": pathlib.Path(program("bpftool"))}
            cls.files |= compile_all(pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hf-vm-"))))
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from None

    def on_each_kernel(
        self, layout: str, script: str, check: Callable[[str], None] = lambda output: None, files: dict | None = None
    ) -> None:
        """The script must succeed on every kernel; `check` examines its output."""
        for kernel in KERNELS:
            with self.subTest(kernel=kernel):
                try:
                    machine = Machine(kernel, layout, limit=300)  # seconds, for a busy host
                except Unavailable as error:
                    self.skipTest(str(error))
                status, output = machine.run(script, self.files if files is None else files)
                print(f"{machine.kernel.name} {layout}: {machine.uptime:.1f} s", file=sys.stderr)
                self.assertEqual(status, 0, output)
                check(output)

    def test_grant_and_revoke_with_a_program_of_another_writer_on_v2(self):
        self.on_each_kernel("v2", PREAMBLE + GATE_V2 + GRANT_AND_REVOKE)

    def test_grant_and_revoke_on_v1(self):
        self.on_each_kernel("v1", PREAMBLE + GATE_V1 + GRANT_AND_REVOKE)

    def check_kernel_tests(self, layout: str, tiers: str, shield: bool) -> None:
        """Changes are detected by the expected tiers, and the tests of the shield pass, or are skipped on old kernels."""
        if not KERNEL_TESTS.exists():
            self.skipTest("the tests are not built: tools/build vm")

        def check(output: str) -> None:
            self.assertIn(tiers, output)
            is_old = "no bpf_set_retval" in output
            passed = re.findall(r"^\[       OK \] ShieldTest\.(\w+)", output, re.M)
            self.assertEqual(len(passed) > 0, shield and not is_old, output)
            self.assertNotRegex(output, r" [1-9]\d* refused,")

        self.on_each_kernel(layout, WATCHED, check, {"hf_kernel_tests": KERNEL_TESTS})

    def test_changes_are_detected_and_shielded_on_v2(self):
        self.check_kernel_tests("v2", "tiers: v2 tracepoints, v1 polling;", True)

    def test_changes_are_detected_on_v1(self):
        self.check_kernel_tests("v1", "v1 files;", False)

    def test_changes_are_detected_and_shielded_with_both_hierarchies(self):
        self.check_kernel_tests("hybrid", "tiers: v2 tracepoints, v1 files;", True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
