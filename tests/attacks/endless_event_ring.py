#!/usr/bin/env python3
"""Suspicion: events come so fast that the daemon, which reads them until none is left, does nothing else any more.

Several processes of a user create and remove cgroups, and move themselves between them, as fast as they can, on both
hierarchies; another process of root writes to a v1 device list and attaches programs elsewhere without end. A
victim that loses its devices must be healed within a bounded time all the same, and the daemon's memory must not grow
with the events.
"""

import pathlib
import subprocess
import sys
import time

from attack_support import GuardCase, start_as_nobody
from engines import unique_name
from guarded import ATTACK, wait_for_our_turn
from support import V1, V2, run_suite

SECONDS, PROCESSES = 5, 3  # of the storm; on each hierarchy
MOST_SECONDS = 3  # of an outage of the victim; if the daemon were blocked, it would last as long as the storm
MOST_MEGABYTES = 60

USER = r"""
top, count = sys.argv[1], 0
os.mkdir(top + "/home")
end = time.monotonic() + float(sys.argv[2])
files = []
for name in ("home", "other"):
    os.makedirs(f"{top}/{name}", exist_ok=True)
    files.append(os.open(f"{top}/{name}/cgroup.procs", os.O_WRONLY))
while time.monotonic() < end:
    for name in range(20):
        os.mkdir(f"{top}/{name}")
    for file in files * 5:
        os.write(file, b"0")
    for name in range(20):
        os.rmdir(f"{top}/{name}")
    count += 50
print(count, flush=True)
"""

ROOT = r"""
import os, sys, time
sys.path.insert(0, sys.argv[1])
import attack
list_, group = os.open(sys.argv[2], os.O_WRONLY), os.open(sys.argv[3], os.O_RDONLY)
end, count = time.monotonic() + float(sys.argv[4]), 0
programs = [attack.load(attack.denier(mark)) for mark in range(2)]
attack.attach(group, programs[0])
while time.monotonic() < end:
    for old, new in ((0, 1), (1, 0)):
        os.write(list_, b"c 1:3 rwm")
        attack.attach(group, programs[new], attack.MULTI | attack.REPLACE, programs[old])
        count += 2
print(count, flush=True)
"""


def setUpModule():
    wait_for_our_turn()


class EndlessEventRing(GuardCase):
    def started(self, process: subprocess.Popen) -> subprocess.Popen:
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def user_storm(self, hierarchy: pathlib.Path) -> subprocess.Popen:
        cgroup = self.delegated(hierarchy / unique_name("user"))
        enter = lambda: (cgroup / "cgroup.procs").write_text("0")
        return self.started(start_as_nobody(USER, str(cgroup), str(SECONDS), preexec_fn=enter))

    def root_storm(self) -> subprocess.Popen:
        lists, group = self.cgroup(V1 / unique_name("noise")), self.cgroup(V2 / unique_name("noise"))
        arguments = [pathlib.Path(ATTACK).parent, lists / "devices.allow", group, SECONDS]
        command = [sys.executable, "-c", ROOT, *map(str, arguments)]
        return self.started(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    def test_a_loss_is_healed_meanwhile(self):
        victims = [self.owed(V1), self.owed(V2)]
        openers = [self.open_all(victim) for victim in victims]
        daemon = self.guard(containers=2)
        time.sleep(0.5)
        memory, most = daemon.resident_kilobytes(), 0
        storms = [self.user_storm(hierarchy) for hierarchy in (V1, V2) * PROCESSES] + [self.root_storm()]
        rounds = 0
        while any(storm.poll() is None for storm in storms):
            rounds += 1
            for victim in victims:
                self.take(victim, rounds)
            time.sleep(0.1)
            most = max(most, daemon.resident_kilobytes() - memory)
        for opener in openers:
            self.check_fine(opener)
            self.assertLess(opener.worst, MOST_SECONDS, f"of {rounds} losses; {daemon.said()[-1000:]}")
        events = [int(storm.stdout.read() or 0) for storm in storms]
        self.assertGreater(sum(events), 10_000, "it was no storm")
        self.assertLess(most >> 10, MOST_MEGABYTES)
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
