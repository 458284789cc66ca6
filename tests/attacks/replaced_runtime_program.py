#!/usr/bin/env python3
"""Suspicion: the runtime whose --version is asked for is another program by the time that it is executed.

A monitor process of root names a runtime in a directory of a user, as a symlink to the real one. The
user exchanges that symlink all the time for a program of its own, so that one program is checked and the other
executed. The user's program must never run as root; the version of a runtime of root is still reported.
"""

import os
import pathlib
import subprocess
import time

from attack_support import NOBODY, GuardCase, conmon, start_as_nobody
from engines import need, program, unique_name, write_bundle
from support import V2, Case, holdfast, holdfast_json, run_suite

SPELLINGS = 6  # of the runtime's path: each is executed for its version
SECONDS = 5

# Exchanges the two names as fast as possible.
EXCHANGER = r"""
libc = ctypes.CDLL(None, use_errno=True)
a, b = sys.argv[1].encode(), sys.argv[2].encode()
print("ready", flush=True)
while True:
    for _ in range(1000): libc.renameat2(-100, a, -100, b, 2)
"""


class ReplacedRuntimeProgram(GuardCase):
    def setUp(self):
        Case.setUp(self)  # No guard is involved, so the test does not wait for one.
        need("runc", "busybox")

    def container_with_runtime(self, runtime: pathlib.Path | str) -> str:
        """Starts a container whose monitor process is root's and names this runtime; returns its cgroup's path."""
        bundle = self.directory()
        inner = self.cgroup(V2 / unique_name("inner"))
        write_bundle(bundle, f"/{inner.name}", gpu=True)
        self.enterContext(conmon("", inner, "-c", inner.name, "-b", str(bundle), "-r", str(runtime)))
        return f"/{inner.name}"

    def version_of(self, cgroup: str) -> tuple[str, str]:
        found = [one for one in holdfast_json("ps")["containers"] if one["cgroup"] == cgroup]
        self.assertEqual(len(found), 1)
        return found[0]["runtime"], found[0]["runtime_version"]

    def user_directory(self) -> pathlib.Path:
        path = self.directory()
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o755)
        return path

    def test_a_program_that_is_exchanged_meanwhile(self):
        directory = self.user_directory()
        evidence = directory / "ran-as"  # The user's program writes its uid there.
        evil = directory / "evil"
        evil.write_text(f"#!/bin/sh\nid -u >>{evidence}\necho runc version 6.6.6\n")
        evil.chmod(0o755)
        os.chown(evil, NOBODY, NOBODY)
        runtime = directory / "runc"
        runtime.symlink_to(program("runc"))
        for count in range(SPELLINGS):
            self.container_with_runtime(f"{directory}/{'./' * count}runc")
        exchanger = start_as_nobody(EXCHANGER, str(runtime), str(evil))
        self.addCleanup(exchanger.stdin.close)
        self.addCleanup(exchanger.stdout.close)
        self.addCleanup(exchanger.wait)
        self.addCleanup(exchanger.kill)
        self.assertEqual(exchanger.stdout.readline(), "ready\n")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.assertIn(holdfast("ps").returncode, (0, 1))
            self.assertFalse(evidence.exists(), f"the user's program ran as uid {read(evidence)}")

    def test_a_program_of_the_user_is_not_run(self):
        directory = self.user_directory()
        evil, evidence = directory / "runc", directory / "ran-as"
        evil.write_text(f"#!/bin/sh\nid -u >>{evidence}\necho runc version 6.6.6\n")
        evil.chmod(0o755)
        os.chown(evil, NOBODY, NOBODY)
        self.assertNotEqual(self.version_of(self.container_with_runtime(evil))[1], "6.6.6")
        self.assertFalse(evidence.exists())

    def test_the_version_of_a_runtime_of_root_is_reported(self):
        said = subprocess.run([program("runc"), "--version"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(self.version_of(self.container_with_runtime(program("runc"))), ("runc", said[2]))


def read(file: pathlib.Path) -> str:
    return file.read_text().split()[0] if file.exists() else ""


if __name__ == "__main__":
    run_suite(verbosity=1)
