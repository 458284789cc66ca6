#!/usr/bin/env python3
"""The CPU manager of holdfastd with real containers: who gets which CPUs, what the kernel reports, and what survives."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import engines
from guarded import HOLDFASTD, eventually, guarding, policy, run_inside
from support import holdfast, why_not

STATE = pathlib.Path("/run/holdfast/cpus")
CPUSET = pathlib.Path("/sys/fs/cgroup/cpuset")
CONFIG = policy() + "cpus: {manager: true, reserved: 0}\n"
ONE = ("--label", "holdfast.cpus=1")
ONE_BY_ANNOTATION = ("--annotation", "holdfast.cpus=1")


def cpuset_of(container: engines.Container) -> pathlib.Path:
    for line in pathlib.Path(f"/proc/{container.pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "cpuset":
            return CPUSET / path.lstrip("/")
    raise engines.Unavailable("cpuset is not a v1 controller here")


def cpus_of(container: engines.Container) -> str:
    return (cpuset_of(container) / "cpuset.cpus").read_text().strip()


def status(*arguments: str, code: int | None = None) -> dict:
    done = holdfast("cpu", "status", *arguments, "-o", "json")
    if code is not None:
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def status_of(container: engines.Container) -> dict:
    return next(one for one in status()["containers"] if one["id"] == container.id)


@contextlib.contextmanager
def asking(runtime: str, annotations: dict[str, str]):
    """A container of plain runc or crun with these annotations in its bundle."""
    original = engines.write_bundle

    def write(directory, cgroup, gpu):
        original(directory, cgroup, gpu)
        file = directory / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"annotations": annotations}))

    engines.write_bundle = write
    try:
        with engines.oci("v1", runtime) as container:
            engines.write_bundle = original
            yield container
    finally:
        engines.write_bundle = original


@unittest.skipUnless(os.cpu_count() >= 2, "needs two CPUs")
@unittest.skipUnless((CPUSET / "cpuset.cpus").exists(), "cpuset is not a v1 controller here: tests/gpu/cpu_manager_test.sh runs on v2")
class CpuManager(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(STATE, ignore_errors=True)
        self.addCleanup(shutil.rmtree, STATE, ignore_errors=True)
        self.all = (CPUSET / "cpuset.cpus").read_text().strip()
        self.last = self.all.rpartition("-")[2]
        self.pool = "0" if self.last == "1" else f"0-{int(self.last) - 1}"

    def wait(self, container, cpus: str, daemon=None):
        seen = eventually(lambda: cpus_of(container) == cpus)
        self.assertTrue(seen, f"{container.engine} has {cpus_of(container)}, not {cpus}: {daemon.said() if daemon else ''}")

    def own(self, container, daemon=None) -> str:
        """The CPUs that it got, outside the pool of the others."""
        self.assertTrue(eventually(lambda: cpus_of(container) not in (self.all, "0")), daemon.said() if daemon else "")
        return cpus_of(container)

    def check_exclusive(self, start):
        """Beside a container that shares: while the other one lives, each is alone on its CPUs; then all are shared again."""
        with guarding(HOLDFASTD, config=CONFIG) as daemon, engines.oci("v1", "runc") as sharing:
            with start() as container:
                own = self.own(container, daemon)
                self.assertEqual(len(own.split(",")), 1)
                self.wait(sharing, ",".join(cpu for cpu in map(str, range(int(self.last) + 1)) if cpu != own) if int(self.last) == 1 else cpus_of(sharing), daemon)
                self.assertTrue(status_of(container)["exclusive"])
                self.assertFalse(status_of(sharing)["exclusive"])
                self.check_runs_only_on(container, own)
            self.wait(sharing, self.all, daemon)
            self.assertEqual(status(code=0)["pool"], self.all)

    def check_runs_only_on(self, container, own: str):
        """A busy loop inside: the CPU that the kernel ran it on last is one of its own, each time."""
        script = "print('ready', flush=True)\nwhile True: pass\n"
        loop = run_inside(container.pid, [*container.cgroups(), cpuset_of(container)], script)
        try:
            loop.stdout.readline()
            child = next(pid for pid in engines.processes() if cpuset_of_pid(pid) == cpuset_of(container) and pid != container.pid)
            for _ in range(50):
                fields = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                self.assertEqual(fields[36], own)
                time.sleep(0.002)
        finally:
            loop.kill()
            loop.wait()

    def test_docker_by_label(self):
        self.check_exclusive(lambda: engines.docker("v1", options=ONE))

    def test_podman_by_annotation(self):
        self.check_exclusive(lambda: engines.podman("v1", options=ONE_BY_ANNOTATION))

    def test_containerd_by_annotation(self):
        self.check_exclusive(lambda: engines.containerd("v1", options=ONE_BY_ANNOTATION))

    def test_runc_by_annotation(self):
        self.check_exclusive(lambda: asking("runc", {"holdfast.cpus": "1"}))

    def test_crun_by_annotation(self):
        self.check_exclusive(lambda: asking("crun", {"holdfast.cpus": "1"}))


def cpuset_of_pid(pid: int) -> pathlib.Path | None:
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "cpuset":
                return CPUSET / path.lstrip("/")
    return None


if __name__ == "__main__":
    if reason := why_not():
        print(reason)
        sys.exit(77)
    unittest.main(verbosity=2)
