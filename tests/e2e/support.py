"""What the end-to-end tests share: the program, scratch cgroups, nodes, and processes inside cgroups."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

from suite import run_suite  # noqa: E402, F401 (for the suites)

HOLDFAST = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("holdfast")
V1 = pathlib.Path("/sys/fs/cgroup/devices")
V2 = pathlib.Path("/sys/fs/cgroup/unified")
LEFTOVERS: list[pathlib.Path] = []


def why_not() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    if not (V1 / "devices.list").exists() or not (V2 / "cgroup.procs").exists():
        return "needs cgroup v1 devices and cgroup v2 mounted"
    return None


def holdfast(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([HOLDFAST, *arguments], capture_output=True, text=True, input=stdin, timeout=60, check=False)


def holdfast_json(*arguments: str) -> dict:
    return json.loads(holdfast(*arguments, "-o", "json").stdout)


def remove_cgroup(path: pathlib.Path) -> None:
    """Children first; processes inside were started by the test and are ended by pid."""
    if not path.exists():
        return
    for child in sorted(path.rglob("*"), reverse=True):
        if child.is_dir():
            remove_cgroup(child)
    for _ in range(300):
        try:
            for pid in (path / "cgroup.procs").read_text().split():
                os.kill(int(pid), 9)
            path.rmdir()
            return
        except OSError:
            time.sleep(0.01)


def free_port() -> int:
    """On loopback, outside the range from which the kernel picks ports by itself."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(20000, 32000)))
            return probe.getsockname()[1]


@contextlib.contextmanager
def scratch_cgroup(hierarchy: pathlib.Path, below: pathlib.Path | None = None):
    path = pathlib.Path(tempfile.mkdtemp(prefix="hf-e2e-", dir=below or hierarchy))
    try:
        yield path
    finally:
        remove_cgroup(path)


@contextlib.contextmanager
def node(major: int, minor: int, kind: str = "c"):
    with tempfile.TemporaryDirectory(prefix="hf-e2e-") as directory:
        path = os.path.join(directory, "node")
        subprocess.run(["mknod", path, kind, str(major), str(minor)], check=True)
        yield path


def errno_of_open(cgroup: pathlib.Path, path: str, flags: int = os.O_RDWR) -> str:
    """What a process in the cgroup gets: "ok", "EPERM", "ENXIO", …"""
    program = (
        "import errno,os,sys\n"
        "open(sys.argv[1]+'/cgroup.procs','w').write('0')\n"
        "try: os.close(os.open(sys.argv[2],int(sys.argv[3]))); print('ok')\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    command = [sys.executable, "-c", program, str(cgroup), path, str(flags)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        if reason := why_not():
            self.skipTest(reason)

    def ok(self, *arguments: str) -> str:
        done = holdfast(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def healed(self, *arguments: str) -> str:
        """`holdfast heal` leaves nothing undone but nodes of a GPU, which has no driver on this host."""
        done = holdfast("heal", *arguments)
        self.check_healed(done)
        return done.stdout

    def check_healed(self, done: subprocess.CompletedProcess) -> None:
        said = done.stdout + done.stderr
        lacking = [path for paths in re.findall(r": still lacks (.+)$", done.stdout, re.M) for path in paths.split(", ")]
        reasons = re.findall(r"^  (/\S+): (.+)$", done.stdout, re.M)
        self.assertEqual([path for path, _ in reasons], lacking, said)
        has_no_driver = re.compile("no driver has (the|that) major|its driver is not loaded")
        left = [path for path, reason in reasons if not path.startswith("/dev/nvidia") or not has_no_driver.search(reason)]
        self.assertEqual((left, done.returncode), ([], 1 if lacking else 0), said)
        self.assertNotRegex(done.stdout, re.compile(": failed$", re.M))

    def refused(self, status: int, contains: str, *arguments: str, stdin: str | None = None) -> None:
        """One line on standard error that names the thing, nothing on standard output, and this exit code."""
        done = holdfast(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("holdfast: "), done.stderr)
        self.assertIn(contains, done.stderr)
        self.assertEqual(done.stdout, "")


def which(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
