#!/usr/bin/env python3
"""Held: the first process of a container executes itself again all the time.

The attacker is the container's program: its command line, name and memory change under every reader. The container
and others must be healed in time, it must stay one container with the same first process, and the daemon's memory
must stay flat.
"""

import pathlib
import time

from attack_support import GuardCase, start_exec_loop
from engines import GPU_NODES, unique_name
from guarded import Plain, ledger_entry, wait_for_our_turn
from support import V1, V2, holdfast_json, remove_cgroup, run_suite

SECONDS = 3
MOST_MEGABYTES = 40


def setUpModule():
    wait_for_our_turn()


class ExecLoop(GuardCase):
    def looping(self, hierarchy: pathlib.Path) -> Plain:
        container = start_exec_loop(hierarchy, unique_name("exec-loop"))
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        self.enterContext(ledger_entry(container.id, GPU_NODES, cgroup=f"/{container.id}"))
        container.restrict()
        return container

    def test_all_are_guarded(self):
        containers = [self.looping(V1), self.looping(V2), self.owed(V2)]
        daemon = self.guard(containers=3)
        memory, end, rounds = daemon.resident_kilobytes(), time.monotonic() + SECONDS, 0
        openers = [self.open_all(container) for container in containers]
        while time.monotonic() < end:
            rounds += 1
            for container in containers:
                self.take(container, rounds)
            ours = {container.id: container.pid for container in containers}
            listed = [(one["id"], one["pid"]) for one in holdfast_json("ps")["containers"] if one["id"] in ours]
            self.assertEqual(sorted(listed), sorted(ours.items()))
        for opener in openers:
            self.check_fine(opener)
            self.assertLess(opener.worst, SECONDS)
        self.check_guarded(self.owed(V2), "a new container")
        self.assertLess(daemon.resident_kilobytes() - memory, MOST_MEGABYTES << 10)
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
