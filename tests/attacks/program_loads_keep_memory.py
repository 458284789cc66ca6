#!/usr/bin/env python3
"""Attack 16: a process loads large device programs all the time and closes each of them at once.

The attacker has CAP_BPF and CAP_NET_ADMIN (here: root stands for it). The daemon reads every program that is
loaded, as one may be attached next. It must not keep them: its memory stays bounded, and programs are freed soon
after they were closed.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

from attack_support import GuardCase
import attack
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

LOADS, LENGTH = 220, 20_000  # programs, and instructions of each: 160 kilobytes
MOST_MEGABYTES = 40
MOST_PROGRAMS = 80  # that the daemon may still hold; it caches some

LOADER = r"""
import sys, time
sys.path.insert(0, sys.argv[1])
import attack
loads, length = map(int, sys.argv[2:4])
print("ready", flush=True)
for mark in range(loads):
    ending = attack.denier(mark)
    attack.load([(attack.MOVE, 0x00, 0, mark)] * (length - len(ending)) + ending)
    time.sleep(0.005)  # Programs of a burst would not be read.
    attack.close_programs()
"""


def setUpModule():
    wait_for_our_turn()


def held_by(pid: int) -> int:
    """How many programs a process keeps alive."""
    links = 0
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            links += os.readlink(descriptor) == "anon_inode:bpf-prog"
    return links


class ProgramLoads(GuardCase):
    def loader(self) -> subprocess.Popen:
        command = [sys.executable, "-c", LOADER, str(pathlib.Path(attack.__file__).parent), str(LOADS), str(LENGTH)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process

    def test_memory_and_programs_are_freed(self):
        container = self.owed(V2)
        daemon = self.guard(containers=1)
        self.check_guarded(container)
        time.sleep(1)
        memory, programs = daemon.resident_kilobytes(), held_by(daemon.pid())
        loader, most = self.loader(), 0
        while loader.poll() is None:
            most = max(most, daemon.resident_kilobytes() - memory)
            time.sleep(0.1)
        self.assertEqual(loader.returncode, 0)
        kept = lambda: held_by(daemon.pid()) - programs
        eventually(lambda: kept() <= MOST_PROGRAMS, 5, 0.2)
        self.assertLessEqual(kept(), MOST_PROGRAMS, "programs that were never attached are kept alive")
        self.assertLess(most >> 10, MOST_MEGABYTES, "megabytes of memory")
        self.check_guarded(container)


if __name__ == "__main__":
    run_suite(verbosity=1)
