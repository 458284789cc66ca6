#!/usr/bin/env python3
"""Suspicion: a process makes every reader of its command line in /proc wait for ever.

The attacker is a user with a FUSE file system (or root in a container with one): one thread reads, through
/proc/self/mem, a mapped page that the file system never delivers, which holds the lock of the process's memory, and
another one wants to map something. From then on reads of /proc/PID/cmdline block. As the parent of a container's
first process, and as a writer of a v1 device list, such a process must not delay other containers: new ones are
guarded, losses of others are healed, and `holdfast ps` ends.
"""

import pathlib
import subprocess
import sys

from attack_support import NOBODY, SECONDS_TO_GUARD, GuardCase
from engines import unique_name
from guarded import eventually, wait_for_our_turn
from support import HOLDFAST, V1, V2, run_suite

SECONDS = 15  # for `holdfast ps` on a busy host

# argv: an empty directory, a uid, a cgroup for the first process of a pid namespace ("": none), a file and its text.
ATTACKER = r"""
import ctypes, mmap, os, struct, sys, threading, time
directory, uid, inner, file, text = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, 9)
procs = os.open(inner + "/cgroup.procs", os.O_WRONLY) if inner else -1

def become_user():
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
    libc.prctl(4, 1)  # PR_SET_DUMPABLE: it may open its own /proc/self/mem.
    libc.prctl(1, 9)

def attributes(node, mode, size):
    return struct.pack("=6Q3I7I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, uid, uid, 0, 4096, 0)

def serve(fuse):
    root, regular = attributes(1, 0o40755, 0), attributes(2, 0o100644, 4096)
    while True:
        request = os.read(fuse, 1 << 18)
        _, opcode, unique, node = struct.unpack_from("=IIQQ", request)
        error, answer = 0, b""
        if opcode == 26: answer = struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0, *[0] * 7)  # INIT
        elif opcode == 1: answer = struct.pack("=4Q2I", 2, 0, 60, 60, 0, 0) + regular  # LOOKUP
        elif opcode == 3: answer = struct.pack("=QII", 60, 0, 0) + (root if node == 1 else regular)  # GETATTR
        elif opcode == 14: answer = struct.pack("=QII", 1, 0, 0)  # OPEN
        elif opcode in (2, 15, 36, 42): continue  # FORGET and INTERRUPT want no answer; READ gets none
        else: error = -38
        os.write(fuse, struct.pack("=IiQ", 16 + len(answer), error, unique) + answer)

fuse = os.open("/dev/fuse", os.O_RDWR)
if libc.unshare(0x00020000) != 0: sys.exit("unshare")
libc.mount(None, b"/", None, 0x44000, None)
options = f"fd={fuse},rootmode=40000,user_id={uid},group_id={uid}".encode()
if libc.mount(b"attack", directory.encode(), b"fuse", 6, options) != 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
if os.fork() == 0:
    become_user()
    serve(fuse)
os.close(fuse)
become_user()
if inner:  # clone(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS)
    child = libc.syscall({"x86_64": 56, "aarch64": 220}[os.uname().machine], 0x30020000 | 17, 0, 0, 0, 0)
    if child < 0: sys.exit("clone: " + os.strerror(ctypes.get_errno()))
    if child == 0:
        libc.prctl(1, 9)
        os.write(procs, b"0")
        while True: time.sleep(60)
target = os.open(file, os.O_WRONLY) if file else -1
libc.mmap.restype = ctypes.c_void_p
address = libc.mmap(None, 4096, 1, 2, os.open(directory + "/file", os.O_RDONLY), 0)
memory = os.open("/proc/self/mem", os.O_RDONLY)
def later(seconds, work): threading.Thread(target=lambda: (time.sleep(seconds), work()), daemon=True).start()
later(0.8, lambda: file and os.write(target, text.encode()))
later(0.5, lambda: libc.mmap(None, 4096, 3, 0x22, -1, 0))
later(0.2, lambda: os.pread(memory, 1, address))
print("ready", flush=True)
while True: time.sleep(60)
"""


def setUpModule():
    wait_for_our_turn()


class BlockingCommandLine(GuardCase):
    def attack(self, cgroup: pathlib.Path, uid: int, inner: pathlib.Path | str = "", *write: str) -> None:
        directory = self.directory()
        directory.chmod(0o755)
        enter = lambda: (cgroup / "cgroup.procs").write_text("0")
        command = [sys.executable, "-c", ATTACKER, str(directory), str(uid), str(inner), *(write or ("", ""))]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        attacker = subprocess.Popen(command, preexec_fn=enter, **options)
        self.addCleanup(attacker.stdout.close)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        said = attacker.stdout.readline()
        blocked = said == "ready\n" and eventually(lambda: not is_readable(attacker.pid), 5)
        if not blocked:
            self.skipTest(f"a reader of a command line cannot be blocked here: {said}")

    def test_the_parent_of_a_first_process(self):
        old = self.owed(V2)
        self.guard(containers=1)
        user = self.delegated(V2 / unique_name("user"))
        inner = self.delegated(V2 / unique_name("inner"))
        self.attack(user, NOBODY, inner)
        new = self.seconds_until_guarded(self.owed(V2), 2 * SECONDS_TO_GUARD)
        self.assertLess(new, SECONDS_TO_GUARD, "a new container")
        self.check_guarded(old, "one that was there")
        try:
            done = subprocess.run([HOLDFAST, "ps"], capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            self.fail("holdfast ps does not end")
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_a_writer_in_a_container(self):
        """In a guarded container of v1, whose list it may change."""
        hostile, other = self.owed(V1), self.owed(V1)
        self.guard("--tier", "files", containers=2)
        self.attack(hostile.cgroup, 0, "", str(hostile.cgroup / "devices.deny"), "c 10:229 rw")
        self.assertLess(self.seconds_until_guarded(other, 2 * SECONDS_TO_GUARD), SECONDS_TO_GUARD)


def is_readable(pid: int) -> bool:
    """Whether the command line can be read within a second, by a process that can be killed."""
    try:
        subprocess.run(["cat", f"/proc/{pid}/cmdline"], stdout=subprocess.DEVNULL, timeout=1, check=False)
    except subprocess.TimeoutExpired:
        return False
    return True


if __name__ == "__main__":
    run_suite(verbosity=1)
