#!/usr/bin/env python3
"""Attack 13: a user nests 300 cgroups in one another, deeper than a walk over all cgroups goes.

The attacker has a cgroup to divide, as every user of systemd has. `holdfast rules` of the whole host must still
answer, and show the gates of all others; the deepest cgroup can be asked about by itself.
"""

import contextlib
import json
import os
import pathlib

from attack_support import GuardCase, close_cgroup, run_as_nobody
from engines import unique_name
from support import V1, V2, Case, holdfast, run_suite

DEPTH = 300

ATTACKER = r"""
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.mkdir("n")
    os.chdir("n")
print("nested")
"""


class NestedCgroups(GuardCase):
    def setUp(self):
        Case.setUp(self)  # No guard is involved, so the test does not wait for one.

    def nest(self, hierarchy: pathlib.Path) -> pathlib.Path:
        top = self.delegated(hierarchy / unique_name("user"))
        self.addCleanup(remove_nested, top)
        self.assertEqual(run_as_nobody(ATTACKER, str(top), str(DEPTH)), "nested\n")
        return top

    def check(self, hierarchy: pathlib.Path) -> None:
        top = self.nest(hierarchy)
        closed = [close_cgroup(self.cgroup(hierarchy / unique_name(name))) for name in ("a", "zz")]
        done = holdfast("rules", "-o", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        gates = [gate["cgroup"] for gate in json.loads(done.stdout)["gates"]]
        for cgroup in closed:
            self.assertIn(str(cgroup), gates)
        self.assertIn(holdfast("rules").returncode, (0, 1))
        done = holdfast("rules", f"cgroup:{top}{'/n' * DEPTH}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_v1(self):
        self.check(V1)

    def test_v2(self):
        self.check(V2)


def remove_nested(top: pathlib.Path) -> None:
    for depth in range(DEPTH, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(f"{top}{'/n' * depth}")


if __name__ == "__main__":
    run_suite(verbosity=1)
