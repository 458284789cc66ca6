#!/usr/bin/env python3
"""Held: root in a container creates and removes cgroups below its own, with processes in them, without end.

Each of them may be a new container to the daemon. Losses of others must be healed in time meanwhile, a new container
must be found, the attacker must be granted nothing, and the daemon must use neither a whole core nor much memory.
"""

import time

from attack_support import SECONDS_TO_GUARD, GuardCase
from guarded import difference, is_sanitized, rules_of, run_inside, wait_for_our_turn
from support import V2, run_suite

SECONDS = 6
MOST_SECONDS = 3  # of an outage of the victim
MOST_MEGABYTES = 60
MOST_OF_A_CORE = 0.9 if is_sanitized() else 0.5

# In the container: creates cgroups with names of containers, each with the first process of a pid namespace.
STORM = r"""
import signal
own, end, count = sys.argv[2], time.monotonic() + float(sys.argv[3]), 0
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while time.monotonic() < end:
    name = f"{own}/{count:064x}"
    os.mkdir(name)
    child = libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x20020000 | 17, 0, 0, 0, 0)
    if child == 0:
        try: open(name + "/cgroup.procs", "w").write("0")
        except OSError: pass
        time.sleep(0.02)
        os._exit(0)
    count += 1
    time.sleep(0.001)
    for old in range(max(0, count - 60), count - 30):
        try: os.rmdir(f"{own}/{old:064x}")
        except OSError: pass
print(count, flush=True)
os._exit(0)
"""


def setUpModule():
    wait_for_our_turn()


class CgroupStorm(GuardCase):
    def test_others_are_guarded_meanwhile(self):
        hostile, victim = self.owed(V2), self.owed(V2)
        opener = self.open_all(victim)
        before = rules_of(f"pid:{hostile.pid}")
        daemon = self.guard(containers=2)
        time.sleep(0.5)
        memory, spent, began = daemon.resident_kilobytes(), daemon.cpu_seconds(), time.monotonic()
        process = run_inside(hostile.pid, hostile.cgroups(), STORM, str(hostile.cgroup), str(SECONDS))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        new, rounds = None, 0
        while process.poll() is None:
            rounds += 1
            self.take(victim, rounds)
            time.sleep(0.2)
            new = self.seconds_until_guarded(self.owed(V2)) if new is None and rounds == 3 else new
        said, wrong = process.communicate(timeout=30)
        share = (daemon.cpu_seconds() - spent) / (time.monotonic() - began)
        self.assertEqual(process.returncode, 0, wrong)
        self.assertGreater(int(said), 200, "it was no storm")
        self.check_fine(opener)
        self.assertLess(opener.worst, MOST_SECONDS, f"of {rounds} losses")
        self.assertLess(new, SECONDS_TO_GUARD, "a new container")
        self.assertEqual(difference(rules_of(f"pid:{hostile.pid}"), before), [])
        self.assertLess(daemon.resident_kilobytes() - memory, MOST_MEGABYTES << 10)
        self.assertLess(share, MOST_OF_A_CORE)
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
