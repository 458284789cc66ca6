#!/usr/bin/env python3
"""Held: a container nests 200 cgroups below its own, with a process in the deepest, and one beside it nests 300.

The attacker is root in a container, with a cgroup to divide. The container's own cgroup is the one that is guarded:
its loss, and that of another container, must be healed in time, and nothing is granted to the cgroups below.
"""

import os
import pathlib
import subprocess

from attack_support import GuardCase
from guarded import Plain, difference, rules_of, wait_for_our_turn
from support import V1, V2, holdfast_json, run_suite

DEPTH = {True: 200, False: 300}  # with a process in the deepest, and without


def setUpModule():
    wait_for_our_turn()


class DeepCgroups(GuardCase):
    def nest(self, container: Plain, is_populated: bool) -> None:
        name = "/i" if is_populated else "/n"
        paths = [f"{container.cgroup}{name * depth}" for depth in range(1, DEPTH[is_populated] + 1)]
        for path in paths:
            os.mkdir(path)
        self.addCleanup(remove_all, paths)
        if is_populated:
            enter = lambda: pathlib.Path(paths[-1], "cgroup.procs").write_text("0")
            process = subprocess.Popen(["unshare", "-m", "sleep", "infinity"], preexec_fn=enter)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def check(self, hierarchy: pathlib.Path) -> None:
        deep, other = self.owed(hierarchy), self.owed(hierarchy)
        for is_populated in (True, False):
            self.nest(deep, is_populated)
        self.guard(containers=2)
        self.check_guarded(deep)
        self.check_guarded(other)
        ids = [one["id"] for one in holdfast_json("ps")["containers"]]
        self.assertEqual([ids.count(deep.id), ids.count(other.id)], [1, 1])
        deepest = f"cgroup:{deep.cgroup}{'/i' * DEPTH[True]}"
        differences = difference(rules_of(deepest), rules_of(f"pid:{deep.pid}"))
        self.assertEqual([line for line in differences if line.startswith("more")], [])

    def test_v1(self):
        self.check(V1)

    def test_v2(self):
        self.check(V2)


def remove_all(paths: list[str]) -> None:
    for path in reversed(paths):
        os.rmdir(path)


if __name__ == "__main__":
    run_suite(verbosity=1)
