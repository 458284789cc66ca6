#!/usr/bin/env python3
"""Attack 5: a container that is owed a GPU ends while a survey runs, and an unrelated process gets its pid.

The attacker is a user with a process in another cgroup and another root, who waits for the pid of a container that
ends. That process must never be given the container's device: neither a rule in its cgroup nor a device node in its
root, which may be the host's. A frozen container, at which a survey waits, makes the moment easy to hit.
"""

import os
import pathlib
import random
import subprocess
import sys
import time

from attack_support import GuardCase, close_cgroup
from engines import unique_name
from guarded import HOLDFASTD, Daemon, Plain, difference, eventually, ledger_entry, rules_of, wait_for_our_turn
from support import V1, V2, remove_cgroup, run_suite

NODE = f"/dev/hf-attack-{os.getpid()}"  # The host has no such node.
DEVICE = {NODE: (195, 0)}
SECONDS = 3  # of swapping without knowing what the daemon does

# Runs in the attacker's cgroup, and forks a process with each pid that it reads: clone3 lets root choose it.
STRANGER = r"""
import ctypes, os, struct, sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
libc = ctypes.CDLL(None, use_errno=True)
if sys.argv[2] == "own":
    libc.unshare(0x00020000)
    libc.mount(None, b"/", None, 0x44000, None)
    if libc.mount(b"none", b"/dev", b"tmpfs", 0, b"mode=755") != 0: sys.exit("mount")
print("ready", flush=True)
for line in sys.stdin:
    pid = ctypes.c_int(int(line))
    arguments = struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)
    child = libc.syscall(435, arguments, len(arguments))
    if child == 0:
        libc.prctl(1, 9)
        while True: libc.pause()
    print(child if child > 0 else -ctypes.get_errno(), flush=True)
    if sys.stdin.readline() == "": break
    if child > 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
"""


def setUpModule():
    wait_for_our_turn()


class Stranger:
    """A process that can be given any free pid, in a cgroup that denies GPUs; `root` is its own or the host's."""

    def __init__(self, cgroup: pathlib.Path, root: str):
        self.cgroup, self.root = cgroup, root
        command = [sys.executable, "-c", STRANGER, str(cgroup), root]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the stranger did not start")

    def become(self, pid: int) -> int:
        """The pid that it has got, or an error number below 0."""
        return self.send(f"{pid}") or int(self.process.stdout.readline())

    def leave(self) -> None:
        """Ends the process with that pid."""
        self.send("leave")

    def send(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def node(self) -> pathlib.Path:
        return pathlib.Path(f"/proc/{self.process.pid}/root{NODE}")

    def close(self) -> None:
        self.process.kill()  # Its child ends with it.
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class PidReuse(GuardCase):
    def stranger(self, hierarchy: pathlib.Path, root: str) -> Stranger:
        cgroup = close_cgroup(self.cgroup(hierarchy / unique_name("stranger")))
        stranger = Stranger(cgroup, root)
        self.addCleanup(stranger.close)
        self.addCleanup(pathlib.Path(NODE).unlink, missing_ok=True)
        return stranger

    def frozen(self) -> Plain:
        """A frozen container that is surveyed before the others, because of its name."""
        container = self.owed(V2, unique_name("a-frozen"))
        (container.cgroup / "cgroup.freeze").write_text("1")
        return container

    def doomed_container(self, hierarchy: pathlib.Path) -> Plain:
        """A container that is owed a device and does not have it."""
        container = Plain(hierarchy, unique_name("plain"), {"/dev/none": (1, 3)})
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        container.deny_all()
        self.enterContext(ledger_entry(container.id, DEVICE, cgroup=f"/{container.id}"))
        return container

    def swap(self, container: Plain, stranger: Stranger) -> int:
        """The container's first process ends, and the stranger has its pid at once."""
        os.kill(container.pid, 9)
        container.holder.wait()
        return eventually(lambda: (got := stranger.become(container.pid)) > 0 and got or stranger.leave(), 5, 0.001)

    def check_nothing_given(self, strangers: list[Stranger], rules: list[list[dict]], why: str) -> None:
        given = []
        for stranger, before in zip(strangers, rules):
            given += difference(rules_of(f"cgroup:{stranger.cgroup}"), before)
            given += [f"{NODE} in the root ({stranger.root}) of a stranger"] if stranger.node().exists() else []
        self.assertEqual(given, [], why)

    def is_being_probed(self, frozen: Plain) -> bool:
        return len((frozen.cgroup / "cgroup.procs").read_text().split()) > 1

    def test_a_stranger_with_the_pid_of_a_container_is_given_nothing(self):
        frozen, other = self.frozen(), self.owed(V2)
        strangers = [self.stranger(V1, "host"), self.stranger(V2, "own")]
        doomed = [self.doomed_container(V1), self.doomed_container(V2)]
        before = [rules_of(f"cgroup:{stranger.cgroup}") for stranger in strangers]
        daemon = Daemon(HOLDFASTD, self.directory())
        self.addCleanup(daemon.kill)
        daemon.launch()
        eventually(lambda: self.is_being_probed(frozen), 3)
        for container, stranger in zip(doomed, strangers):
            self.assertEqual(self.swap(container, stranger), container.pid)
        eventually(lambda: not self.is_being_probed(frozen), 10)
        time.sleep(1)
        self.check_nothing_given(strangers, before, "swapped while the survey waits")
        for stranger in strangers:
            stranger.leave()

        end, chance = time.monotonic() + SECONDS, random.Random(5)
        while time.monotonic() < end:
            container, stranger = self.doomed_container(V2), strangers[1]
            time.sleep(chance.uniform(0, 0.25))
            self.assertEqual(self.swap(container, stranger), container.pid)
            time.sleep(chance.uniform(0, 0.25))
            stranger.leave()
            self.check_nothing_given(strangers, before, "swapped at any moment")
        self.assertIsNone(daemon.process.poll(), daemon.said())
        self.check_guarded(other, "a container that lives is guarded")


if __name__ == "__main__":
    run_suite(verbosity=1)
