#!/usr/bin/env python3
"""Attack 12: a process of the host, older than the container, is moved into the container's cgroup.

A tool or a user with rights on the cgroup does it; the process has the host's mount namespace and root. The container
must stay listed, owed and guarded, whether its cgroup is named by an id or only a state file of runc names it, and no
device node may be created in the host's /dev because of it.
"""

import os
import pathlib
import subprocess
from unittest import mock

from attack_support import GuardCase, container_id, heal_only
import engines
from engines import CGROUPS, GPU_NODES, unique_name
from guarded import Plain, ledger_entry, wait_for_our_turn
from guard_test import attacks
from support import V1, V2, holdfast_json, remove_cgroup, run_suite

NODE = f"/dev/hf-attack-{os.getpid()}"  # The host has no such node.


def setUpModule():
    wait_for_our_turn()


class HostProcessInContainerCgroup(GuardCase):
    def host_process(self) -> subprocess.Popen:
        process = subprocess.Popen(["sleep", "infinity"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def take_devices(self, container: engines.Container) -> None:
        for cgroup in container.cgroups():
            if cgroup.is_relative_to(V1):
                done = attacks("v1", cgroup, *(f"c {major}:{minor} rw" for major, minor in GPU_NODES.values()))
            else:
                done = attacks("replace", cgroup)
            self.assertEqual(done.returncode, 0, done.stderr)

    def check_runc(self, version: str, name: str) -> None:
        process = self.host_process()
        with mock.patch("engines.unique_name", lambda kind: name):
            container = self.start(engines.oci, version, "runc")
        for cgroup in all_cgroups_of(container.pid):
            (cgroup / "cgroup.procs").write_text(str(process.pid))
        listed = {one["id"]: one for one in holdfast_json("ps")["containers"]}
        self.assertIn(name, [*listed])
        self.assertEqual(listed[name]["pid"], container.pid)
        self.assertIn("/dev/nvidia0", [node["path"] for node in listed[name]["owed"]])
        opener = self.open_all(container)
        daemon = self.guard(config=heal_only(name))
        self.take_devices(container)
        self.check_fine(opener, f"not guarded: {daemon.said()}")

    def test_named_by_an_id_v1(self):
        self.check_runc("v1", container_id())

    def test_named_by_an_id_v2(self):
        self.check_runc("v2", container_id())

    def test_known_by_its_state_file_v1(self):
        self.check_runc("v1", unique_name("runc"))

    def test_known_by_its_state_file_v2(self):
        self.check_runc("v2", unique_name("runc"))

    def check_node(self, hierarchy: pathlib.Path) -> None:
        """A node that the container lacks is created there, not on the host."""
        process = self.host_process()
        self.addCleanup(pathlib.Path(NODE).unlink, missing_ok=True)
        container = Plain(hierarchy, container_id(), {})
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        self.enterContext(ledger_entry(container.id, {NODE: (195, 0)}, cgroup=f"/{container.id}"))
        (container.cgroup / "cgroup.procs").write_text(str(process.pid))
        other = self.owed(V2)
        self.guard(config=heal_only(container.id, other.id))
        self.check_guarded(other)
        self.assertFalse(pathlib.Path(NODE).exists(), f"{NODE} was created on the host")

    def test_no_node_on_the_host_v1(self):
        self.check_node(V1)

    def test_no_node_on_the_host_v2(self):
        self.check_node(V2)


def all_cgroups_of(pid: int) -> list[pathlib.Path]:
    """In every hierarchy, also in those that have nothing to do with devices."""
    lines = [line.split(":", 2) for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    hierarchies = [(name.removeprefix("name=") or "unified", path) for _, name, path in lines if path != "/"]
    return [CGROUPS / name / path.lstrip("/") for name, path in hierarchies]


if __name__ == "__main__":
    run_suite(verbosity=1)
