#!/usr/bin/env python3
"""Held: minutes of all loads at once; the daemon's memory, descriptors and programs stay flat.

Containers come and go, lose their devices, execute themselves, are frozen and thawed, a user creates cgroups, and
programs are loaded. After a first minute nothing of the daemon may grow any more, and no outage may be long.
HOLDFAST_SOAK is the number of minutes.
"""

import os
import pathlib
import random
import time

from attack_support import GuardCase, start_exec_loop, start_as_nobody
import attack
from engines import GPU_NODES, unique_name
from guarded import Daemon, Plain, ledger_entry, wait_for_our_turn
from support import V1, V2, remove_cgroup, run_suite

MINUTES = float(os.environ.get("HOLDFAST_SOAK", "3"))
LONGEST_OUTAGE = 5  # seconds
MOST_MEGABYTES, MOST_DESCRIPTORS, MOST_PROGRAMS = 20, 60, 200  # more at the end than after the first minute

USER = r"""
while True:
    for name in range(10): os.mkdir(f"{sys.argv[1]}/{name}")
    time.sleep(0.05)
    for name in range(10): os.rmdir(f"{sys.argv[1]}/{name}")
"""


def setUpModule():
    wait_for_our_turn()


class Soak(GuardCase):
    def brief(self, hierarchy: pathlib.Path) -> None:
        """A container that starts, loses its devices and ends."""
        container = Plain(hierarchy, unique_name("brief"), GPU_NODES)
        try:
            with ledger_entry(container.id, GPU_NODES, cgroup=f"/{container.id}"):
                container.restrict()
                time.sleep(self.chance.choice((0, 0.3, 1)))
                self.take(container)
        finally:
            container.close()
            remove_cgroup(container.cgroup)

    def load_some(self) -> None:
        """Loads few enough programs for the kernel to free them."""
        for _ in range(20):
            attack.load(attack.denier(self.chance.randrange(1 << 30)))
            attack.close_programs()
            time.sleep(0.005)

    def freeze(self, container: Plain) -> None:
        (container.cgroup / "cgroup.freeze").write_text("1")
        time.sleep(self.chance.uniform(0, 1))
        (container.cgroup / "cgroup.freeze").write_text("0")

    def costs(self, daemon: Daemon) -> tuple[int, int, int]:
        return daemon.resident_kilobytes() >> 10, daemon.descriptors(), len(attack.device_programs())

    def work(self, until: float) -> None:
        while time.monotonic() < until:
            step = self.chance.randrange(6)
            if step < 3:
                self.take(self.chance.choice(self.containers), self.chance.randrange(40))
            elif step == 3:
                self.brief(self.chance.choice((V1, V2)))
            elif step == 4:
                self.load_some()
            else:
                self.freeze(self.frozen)

    def test_nothing_grows(self):
        self.chance = random.Random(13)
        self.containers = [self.owed(V1), self.owed(V2), self.owed(V2)]
        self.frozen = self.owed(V2, unique_name("frozen"))
        exec_loop = start_exec_loop(V2, unique_name("exec-loop"))
        self.addCleanup(remove_cgroup, exec_loop.cgroup)
        self.addCleanup(exec_loop.close)
        user = start_as_nobody(USER, str(self.delegated(V2 / unique_name("user"))))
        self.addCleanup(user.stdout.close)
        self.addCleanup(user.stdin.close)
        self.addCleanup(user.wait)
        self.addCleanup(user.kill)
        openers = [self.open_all(container) for container in self.containers]
        daemon = self.guard(containers=4)
        began = time.monotonic()
        self.work(began + 60)
        time.sleep(5)
        before = self.costs(daemon)
        self.work(began + max(2, MINUTES) * 60)
        time.sleep(5)
        grown = [after - first for first, after in zip(before, self.costs(daemon))]
        for opener in openers:
            self.check_fine(opener)
            self.assertLess(opener.worst, LONGEST_OUTAGE)
        for growth, most in zip(grown, (MOST_MEGABYTES, MOST_DESCRIPTORS, MOST_PROGRAMS)):
            self.assertLess(growth, most, f"megabytes, descriptors, programs: {before}, and then {grown} more")
        self.assertLess(daemon.stop(), 2)


if __name__ == "__main__":
    run_suite(verbosity=1)
