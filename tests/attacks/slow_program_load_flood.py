#!/usr/bin/env python3
"""Held: processes load device programs all the time while a container loses its devices.

The attacker has CAP_BPF and CAP_NET_ADMIN (root stands for it) and attaches nothing. Each load may announce a loss.
Losses must be healed in time meanwhile, and the flood must not cost the daemon a core.
"""

import pathlib
import subprocess
import sys
import time

from attack_support import GuardCase
from guarded import ATTACK, is_sanitized, wait_for_our_turn
from support import V1, V2, run_suite

SECONDS, PROCESSES = 4, 2
MOST_SECONDS = 3  # of an outage of the victim
MOST_OF_A_CORE = 0.6 if is_sanitized() else 0.4

# At most 300 loads per second. Kernel: if 1,024 programs wait to be freed on one CPU, the allocator of program memory
# can be blocked for good (seen with 6.18), and with it every load and every seccomp filter of this host.
LOADER = r"""
import sys, time
sys.path.insert(0, sys.argv[1])
import attack
end, mark = time.monotonic() + float(sys.argv[2]), int(sys.argv[3])
while time.monotonic() < end:
    mark += 1
    attack.load(attack.denier(mark))
    attack.close_programs()
    time.sleep(1 / 300)
"""


def setUpModule():
    wait_for_our_turn()


class ProgramLoadFlood(GuardCase):
    def loader(self, number: int) -> subprocess.Popen:
        arguments = [pathlib.Path(ATTACK).parent, SECONDS, number * 1_000_000]
        command = [sys.executable, "-c", LOADER, *map(str, arguments)]
        process = subprocess.Popen(command)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_losses_are_healed_meanwhile(self):
        victims = [self.owed(V1), self.owed(V2)]
        openers = [self.open_all(victim) for victim in victims]
        daemon = self.guard(containers=2)
        time.sleep(0.5)
        spent, began = daemon.cpu_seconds(), time.monotonic()
        loaders = [self.loader(number) for number in range(1, PROCESSES + 1)]
        rounds = 0
        while any(loader.poll() is None for loader in loaders):
            rounds += 1
            for victim in victims:
                self.take(victim, rounds)
            time.sleep(0.1)
        share = (daemon.cpu_seconds() - spent) / (time.monotonic() - began)
        self.assertEqual([loader.returncode for loader in loaders], [0] * PROCESSES)
        for opener in openers:
            self.check_fine(opener)
            self.assertLess(opener.worst, MOST_SECONDS, f"of {rounds} losses")
        self.assertLess(share, MOST_OF_A_CORE)
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
