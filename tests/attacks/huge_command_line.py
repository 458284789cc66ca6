#!/usr/bin/env python3
"""Attack 7: a user's process with a command line of 4 GiB starts a process in a pid namespace of its own.

The attacker has no privilege: prctl(PR_SET_MM_MAP) lets every process set the address of its arguments, and memory that
was never touched costs nothing. The daemon and `holdfast ps` read the parent of a container's first process.
Both must go on with little memory, and containers of others must be seen and guarded.
"""

import contextlib
import json
import os
import pathlib
import subprocess

from attack_support import GuardCase, start_as_nobody
from engines import CGROUPS, unique_name
from guarded import eventually, wait_for_our_turn
from support import HOLDFAST, V2, run_suite

MEMORY = CGROUPS / "memory"
LIMIT = 1 << 30  # for the programs under attack, so that the host is in no danger
MOST_MEGABYTES = 300  # that the attack may cost the daemon; it cost 50 times the command line

# In a cgroup of the user. Prints "ready" when its child is the first of a pid namespace, in a cgroup below.
ATTACKER = r"""
size, cgroup = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, 9)
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=3)  # not reserved
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fields = ["", "", ""] + open("/proc/self/stat").read().rpartition(")")[2].split()  # as proc(5) numbers them
libc.sbrk.restype = ctypes.c_void_p
code, data, stack, environment = fields[26:28], fields[45:47], fields[28], fields[50:52]
addresses = [*code, *data, fields[47], libc.sbrk(0), stack, start, start + size, *environment]
os.makedirs(cgroup + "/inner", exist_ok=True)
if libc.unshare(0x10000000 | 0x20000000 | 0x00020000) != 0: sys.exit("unshare")
child = os.fork()
if child == 0:
    libc.prctl(1, 9)
    open(cgroup + "/inner/cgroup.procs", "w").write("0")
    print("ready", flush=True)
    while True: time.sleep(60)
memory_map = struct.pack("=11QQIi", *map(int, addresses), 0, 0, -1)
if libc.prctl(35, 14, memory_map, len(memory_map), 0) != 0: sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
print("huge", flush=True)
while True: time.sleep(60)
"""


def setUpModule():
    wait_for_our_turn()


class HugeCommandLine(GuardCase):
    def setUp(self):
        super().setUp()
        if not (MEMORY / "cgroup.procs").exists():
            self.skipTest("needs the memory controller of cgroup v1")
        self.limited = self.cgroup(MEMORY / unique_name("limit"))
        (self.limited / "memory.limit_in_bytes").write_text(str(LIMIT))

    def attack(self, size: int) -> None:
        cgroup = self.delegated(V2 / unique_name("user"))
        enter = lambda: (cgroup / "cgroup.procs").write_text("0")
        attacker = start_as_nobody(ATTACKER, str(size), str(cgroup), preexec_fn=enter, stderr=subprocess.STDOUT)
        self.addCleanup(attacker.stdout.close)
        self.addCleanup(attacker.stdin.close)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        said = sorted(attacker.stdout.readline() for _ in range(2))
        if said != ["huge\n", "ready\n"]:
            self.skipTest(f"such a process cannot be started here: {said}")

    def ps(self) -> subprocess.CompletedProcess:
        enter = lambda: (self.limited / "cgroup.procs").write_text("0")
        command = [HOLDFAST, "ps", "-o", "json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, preexec_fn=enter)

    def peak_megabytes(self, pid: int) -> int:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) >> 10
        return 0

    def test_the_daemon_and_ps_go_on_with_little_memory(self):
        container = self.owed(V2)
        daemon = self.guard(containers=1)
        (self.limited / "cgroup.procs").write_text(str(daemon.pid()))
        before = self.peak_megabytes(daemon.pid())
        for size in (64 << 20, 4 << 30):
            self.attack(size)

        eventually(lambda: daemon.process.poll() is not None, 3)  # while the new cgroups cause surveys
        self.assertIsNone(daemon.process.poll(), f"the daemon died: {daemon.said()[-500:]}")
        self.assertLess(self.peak_megabytes(daemon.pid()) - before, MOST_MEGABYTES)
        done = self.ps()
        self.assertIn(done.returncode, (0, 1), done.stderr[-500:])
        self.assertIn(container.id, [one["id"] for one in json.loads(done.stdout)["containers"]])
        self.check_guarded(self.owed(V2), "a new container is found and guarded")
        self.check_guarded(container)
        self.assertLess(self.peak_megabytes(daemon.pid()) - before, MOST_MEGABYTES)


if __name__ == "__main__":
    run_suite(verbosity=1)
