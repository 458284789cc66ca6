#!/usr/bin/env python3
"""Suspicion: the probe of `holdfast rules` uses paths in /tmp, which a user could predict or replace.

A user watches /tmp while root asks about rules that cannot be read, so that a probe has to try them. Nothing may
appear in /tmp or in another directory that every user may write to, and the answers of the probe must be right.
"""

import ctypes
import os
import pathlib
import struct
import subprocess

from attack_support import GuardCase
from engines import unique_name
from support import HOLDFAST, V1, Case, run_suite

SHARED = ("/tmp", "/var/tmp", "/dev/shm")
CHANGES = 0x3C6  # inotify: modified, attributes, moved from and to, created, deleted
QUESTIONS = {"c:195:0:rw": "deny", "c:195:0:m": "allow", "c:195:1:rw": "allow", "b:8:0:m": "allow"}


class Watched:
    """A mount namespace in which the shared directories are empty file systems, all of whose changes are recorded."""

    def __init__(self, directories: tuple[str, ...]):
        mounts = [f"mkdir -p {path}; mount -t tmpfs -o mode=1777 tmpfs {path}" for path in directories]
        script = "\n".join([*mounts, "echo ready", "exec sleep infinity"])
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-ec", script], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.queue = self.libc.inotify_init1(os.O_NONBLOCK)
        for path in directories:
            if self.libc.inotify_add_watch(self.queue, f"/proc/{self.holder.pid}/root{path}".encode(), CHANGES) < 0:
                raise OSError(ctypes.get_errno(), "inotify")

    def run(self, program: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
        """By its descriptor: the program itself may be below /tmp."""
        with open(program, "rb") as file:
            command = ["nsenter", "-m", "-t", str(self.holder.pid), f"/proc/self/fd/{file.fileno()}", *arguments]
            options = {"capture_output": True, "text": True, "timeout": 60, "pass_fds": [file.fileno()]}
            return subprocess.run(command, check=False, **options)

    def changes(self) -> list[str]:
        """Names of files that were created, removed or changed."""
        try:
            data = os.read(self.queue, 1 << 16)
        except BlockingIOError:
            return []
        names, at = [], 0
        while at < len(data):
            size = struct.unpack_from("=iIII", data, at)[3]
            names.append(data[at + 16 : at + 16 + size].rstrip(b"\0").decode())
            at += 16 + size
        return names

    def close(self) -> None:
        os.close(self.queue)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class ProbeInTmp(GuardCase):
    def setUp(self):
        Case.setUp(self)  # No guard is involved, so the test does not wait for one.

    def watched(self) -> Watched:
        watched = Watched(SHARED)
        self.addCleanup(watched.close)
        return watched

    def unreadable(self) -> pathlib.Path:
        """A v1 list that allows all but one device: the kernel does not show the exception."""
        cgroup = self.cgroup(V1 / unique_name("unreadable"))
        (cgroup / "devices.deny").write_text("c 195:0 rw")
        return cgroup

    def test_the_watch_sees_what_a_program_creates(self):
        watched = self.watched()
        watched.run(pathlib.Path("/bin/sh"), "-c", "echo >/tmp/some; mkdir /dev/shm/other")
        self.assertLessEqual({"some", "other"}, set(watched.changes()))

    def test_nothing_appears_in_a_shared_directory(self):
        watched, cgroup = self.watched(), self.unreadable()
        process = subprocess.Popen(["sleep", "infinity"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        (cgroup / "cgroup.procs").write_text(str(process.pid))
        for target in (f"pid:{process.pid}", f"cgroup:{cgroup}"):
            asked = [argument for question in QUESTIONS for argument in ("--ask", question)]
            done = watched.run(HOLDFAST, "rules", target, *asked)
            answers = [line.split()[0] for line in done.stdout.splitlines()]
            self.assertEqual(answers, [*QUESTIONS.values()], done.stdout + done.stderr)
            self.assertIn("probe", done.stdout, "it was not needed")
            self.assertEqual(watched.run(HOLDFAST, "rules", target).returncode, 0)
        self.assertEqual(watched.changes(), [])


if __name__ == "__main__":
    run_suite(verbosity=1)
