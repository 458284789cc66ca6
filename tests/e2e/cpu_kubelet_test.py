#!/usr/bin/env python3
"""The CPU manager beside a real kubelet with the policy none: pods that come and go. The kubelet is found as in kubelet_test.py.

HOLDFAST_ROUNDS: how often a Guaranteed pod comes and goes (default 5).
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import plugin_test  # takes the arguments
from engines import CGROUPS, TIMEOUT, Unavailable, need
from guarded import HOLDFASTD, Daemon, policy
from kubelet_test import Pod, RealKubelet
from plugin_test import eventually
from support import run_suite

CONFIG = policy() + "cpus: {manager: true, reserved: 0}\n"
WHOLE = {"limits": {"cpu": "1", "memory": "32Mi"}}  # requests are the same: Guaranteed
PART = {"limits": {"cpu": "200m", "memory": "32Mi"}, "requests": {"cpu": "100m", "memory": "16Mi"}}
FRACTION = {"limits": {"cpu": "500m", "memory": "32Mi"}}


def cpus_of(pod: Pod) -> str:
    for line in pathlib.Path(f"/proc/{pod.container.pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "cpuset":
            return (CGROUPS / "cpuset" / path.lstrip("/") / "cpuset.cpus").read_text().strip()
    raise AssertionError("it has no cpuset")


class WithKubelet(plugin_test.Stands):
    @classmethod
    def setUpClass(cls):
        path = os.environ.get("HOLDFAST_KUBELET") or shutil.which("kubelet")
        if not path:
            raise unittest.SkipTest("no kubelet in PATH, and HOLDFAST_KUBELET names none")
        if os.cpu_count() != 2 or not (CGROUPS / "cpuset/cpuset.cpus").exists():
            raise unittest.SkipTest("needs two CPUs, and cpuset as a v1 controller")
        super().setUpClass()
        try:
            need("containerd", "ctr", "runc", "curl", "busybox")
            cls.kubelet = RealKubelet(cls.stage, str(pathlib.Path(path).resolve()), policy="none")
        except Unavailable as error:
            raise unittest.SkipTest(str(error)) from None
        cls.addClassCleanup(cls.kubelet.close)

    def reset_directory(self) -> None:
        """kubelet's own is kept."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory(prefix="hf-cpus-", dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.daemon = Daemon(HOLDFASTD, pathlib.Path(directory.name), prefix=lambda *command: self.stage.inside([*command]))
        self.daemon.config.write_text(CONFIG)
        self.addCleanup(self.daemon.kill)
        self.daemon.start()

    def run_pod(self, resources: dict) -> Pod:
        pod = self.kubelet.run_with(resources)
        self.addCleanup(lambda: self.kubelet.delete_pod(pod) if self.kubelet.manifest(pod.name).exists() else None)
        return pod

    def wait(self, pod: Pod, cpus: str) -> None:
        self.assertTrue(eventually(lambda: cpus_of(pod) == cpus, TIMEOUT), f"{cpus_of(pod)}: {self.daemon.said()}")

    def test_pods_come_and_go(self):
        part, fraction = self.run_pod(PART), self.run_pod(FRACTION)
        for _ in range(int(os.environ.get("HOLDFAST_ROUNDS", "5"))):
            whole = self.run_pod(WHOLE)
            self.wait(whole, "1")
            self.wait(part, "0"), self.wait(fraction, "0")
            self.kubelet.delete_pod(whole)
            self.wait(part, "0-1"), self.wait(fraction, "0-1")
        self.assertNotIn("keeps setting", self.daemon.said())

    def test_a_restart_of_kubelet_changes_nothing(self):
        whole, part = self.run_pod(WHOLE), self.run_pod(PART)
        self.wait(whole, "1"), self.wait(part, "0")
        self.kubelet.restart()
        self.assertTrue(eventually(lambda: self.kubelet.status(whole.name), TIMEOUT))
        self.assertEqual((cpus_of(whole), cpus_of(part)), ("1", "0"))


if __name__ == "__main__":
    run_suite()
