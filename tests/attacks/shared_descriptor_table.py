#!/usr/bin/env python3
"""Attack 8: many processes of a user share one descriptor table that is as large as the user may have it.

The attacker has no privilege: clone(CLONE_FILES) costs nothing, and every process shows the whole table in /proc. A
search for the holders of a device reads all of them. `holdfast doctor` and `holdfast devices` must end within seconds,
and a new container must be guarded while a diagnosis, which searches for the holders of a denied device, runs.
"""

import resource
import subprocess
import time

from attack_support import SECONDS_TO_GUARD, GuardCase, heal_only, start_as_nobody
from engines import unique_name
from guarded import Plain, wait_for_our_turn
from support import HOLDFAST, V2, run_suite

ENTRIES = 12_000_000  # that a reader finds in all tables; a minute of work
MOST_DESCRIPTORS = 1 << 20
SECONDS = 15  # for a holdfast command on a busy host

ATTACKER = r"""
count, processes = int(sys.argv[1]), int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
null = os.open("/dev/null", os.O_RDWR)
for number in range(null + 1, count): os.dup2(null, number, inheritable=False)
for _ in range(processes):
    clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    child = libc.syscall(clone, 0x400 | 17, 0, 0, 0, 0)  # CLONE_FILES
    if child == 0:
        while True: libc.pause()
    if child < 0: sys.exit("clone: " + os.strerror(ctypes.get_errno()))
print("ready", flush=True)
while True: time.sleep(60)
"""


def setUpModule():
    wait_for_our_turn()


class SharedDescriptorTable(GuardCase):
    def attack(self) -> None:
        cgroup = self.cgroup(V2 / unique_name("user"))  # All processes in it are killed with it.
        limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], MOST_DESCRIPTORS)

        def enter() -> None:
            (cgroup / "cgroup.procs").write_text("0")
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        numbers = [str(limit), str(ENTRIES // limit)]
        attacker = start_as_nobody(ATTACKER, *numbers, preexec_fn=enter, stderr=subprocess.STDOUT)
        self.addCleanup(attacker.stdout.close)
        self.addCleanup(attacker.stdin.close)
        self.addCleanup(attacker.wait)
        self.addCleanup((cgroup / "cgroup.kill").write_text, "1")
        self.assertEqual(attacker.stdout.readline(), "ready\n")

    def denied(self) -> Plain:
        """Owed what its cgroup denies; the guard only observes it."""
        container = self.owed(V2, unique_name("denied"))
        self.take(container)
        return container

    def check_ends(self, *arguments: str) -> None:
        began = time.monotonic()
        try:
            done = subprocess.run([HOLDFAST, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            self.fail(f"holdfast {arguments[0]} has not ended after {SECONDS} seconds")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertLess(time.monotonic() - began, SECONDS)

    def test_the_command_line_ends_within_seconds(self):
        container = self.denied()
        self.attack()
        for arguments in (["doctor", container.id], ["devices"]):
            with self.subTest(arguments=arguments):
                self.check_ends(*arguments)

    def test_a_new_container_is_guarded_while_a_diagnosis_runs(self):
        self.denied()
        self.attack()
        new = unique_name("plain")
        self.guard(config=heal_only(new), containers=1)
        time.sleep(0.5)  # The diagnosis follows the first survey.
        container = self.owed(V2, new)
        self.assertLess(self.seconds_until_guarded(container), SECONDS_TO_GUARD)


if __name__ == "__main__":
    run_suite(verbosity=1)
