#!/usr/bin/env python3
"""Attack 6: a container's process is in a cgroup that is not the container's: its pod's slice, or a service.

systemd moves processes of v1 containers to the pod's slice in the devices hierarchy, and a runtime may join one
hierarchy only and stay in its service's cgroup on the other. The container is owed a GPU that the slice or the
service denies. The rules of the slice or service hold for many others and must stay as they are, on cgroup v1 and v2.
"""

import pathlib
from unittest import mock

from attack_support import GuardCase, close_cgroup, container_id, heal_only
import engines
from engines import CGROUPS, GPU_NODES, unique_name
from guarded import Plain, difference, eventually, ledger_entry, rules_of, wait_for_our_turn
from support import V1, V2, holdfast, run_suite

PIDS = CGROUPS / "pids"  # a hierarchy without device rules, in which the process stays in the cgroup of the container
# The rules that runc gives every container.
DEFAULTS = ("c *:* m", "b *:* m", "c 5:0 rwm", "c 5:2 rwm", "c 10:200 rwm", "c 136:* rwm")


def setUpModule():
    wait_for_our_turn()


class ProcessMovedToSlice(GuardCase):
    def closed_cgroup(self, hierarchy: pathlib.Path, name: str) -> pathlib.Path:
        """Denies all devices but those with major 1."""
        return close_cgroup(self.cgroup(hierarchy / name))

    def runc_container(self, parent: str = "") -> engines.Container:
        """A container of runc on v1, with 64 digits for a name, and three devices in its bundle."""
        with mock.patch("engines.unique_name", lambda kind: container_id()):
            return self.start(engines.oci, "v1", "runc", parent=parent)

    def check_not_widened(self, cgroup: pathlib.Path, container: str) -> None:
        """Also when its rules are checked several times, and while others are healed."""
        other = self.owed(V2)
        before = rules_of(f"cgroup:{cgroup}")
        daemon = self.guard(config=heal_only(container, other.id), containers=1)
        self.check_guarded(other, "a container in its own cgroup is guarded")
        self.take(other, 7)
        eventually(lambda: difference(rules_of(f"cgroup:{cgroup}"), before), 1.5, 0.3)
        self.assertEqual(difference(rules_of(f"cgroup:{cgroup}"), before), [], f"widened: {daemon.records(container)}")
        daemon.stop()
        done = holdfast("heal", container)
        self.assertEqual(difference(rules_of(f"cgroup:{cgroup}"), before), [], f"widened by hand: {done.stdout}")

    def test_a_slice_on_v1(self):
        """It had the devices when the container started."""
        group = self.closed_cgroup(V1, unique_name("slice"))
        gpus = [f"c {major}:{minor} rwm" for major, minor in GPU_NODES.values()]
        for text in [*gpus, *DEFAULTS]:
            (group / "devices.allow").write_text(text)
        container = self.runc_container(group.name)
        (group / "cgroup.procs").write_text(str(container.pid))
        for text in gpus:
            (group / "devices.deny").write_text(text)
        self.check_not_widened(group, container.id)

    def test_a_slice_on_v2(self):
        group = self.closed_cgroup(V2, unique_name("slice"))
        container = Plain(group, container_id(), {})
        self.addCleanup(container.close)
        own = self.cgroup(self.cgroup(PIDS / group.name) / container.id)
        (own / "cgroup.procs").write_text(str(container.pid))
        (group / "cgroup.procs").write_text(str(container.pid))
        self.enterContext(ledger_entry(container.id, GPU_NODES, cgroup=f"/{group.name}/{container.id}"))
        self.check_not_widened(group, container.id)

    def test_a_service_on_v2(self):
        container = self.runc_container()
        group = self.closed_cgroup(V2, unique_name("some") + ".service")
        (group / "cgroup.procs").write_text(str(container.pid))
        self.check_not_widened(group, container.id)

    def test_a_service_on_v1(self):
        with mock.patch("engines.unique_name", lambda kind: container_id()):
            container = self.start(engines.oci, "v2", "runc")
        group = self.closed_cgroup(V1, unique_name("some") + ".service")
        (group / "cgroup.procs").write_text(str(container.pid))
        self.check_not_widened(group, container.id)


if __name__ == "__main__":
    run_suite(verbosity=1)
