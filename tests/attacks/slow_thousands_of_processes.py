#!/usr/bin/env python3
"""Held: 5,000 processes in one container.

The attacker is a user of the container. Every survey reads them all. The container itself and others must be healed
in time, a new container must be found, and `holdfast ps` and `doctor` must end within seconds.
"""

import subprocess
import time

from attack_support import GuardCase
from guarded import run_inside, wait_for_our_turn
from support import HOLDFAST, V2, run_suite

PROCESSES = 5000
SECONDS = 20  # for a holdfast command on a busy host

FORKS = r"""
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        libc.prctl(1, 9)
        while True: libc.pause()
print("ready", flush=True)
while True: libc.pause()
"""


def setUpModule():
    wait_for_our_turn()


class ThousandsOfProcesses(GuardCase):
    def fill(self, container) -> None:
        process = run_inside(container.pid, container.cgroups(), FORKS, str(PROCESSES))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup((container.cgroup / "cgroup.kill").write_text, "1")
        self.assertEqual(process.stdout.readline(), "ready\n")

    def test_all_are_guarded_and_the_command_line_ends(self):
        crowded, other = self.owed(V2), self.owed(V2)
        self.fill(crowded)
        began = time.monotonic()
        self.guard(containers=2)
        self.assertLess(time.monotonic() - began, SECONDS)
        self.check_guarded(crowded)
        self.check_guarded(other)
        self.check_guarded(self.owed(V2), "a new container")
        for name in ("ps", "doctor"):
            done = subprocess.run([HOLDFAST, name], capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)


if __name__ == "__main__":
    run_suite(verbosity=1)
