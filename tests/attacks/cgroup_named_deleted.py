#!/usr/bin/env python3
"""Attack 10: a cgroup is named `x (deleted)`, as the kernel shows removed cgroups.

The attacker may name cgroups: its own container disappears from every list, and a process in there that calls itself
conmon counts as a monitor process of the host. The container must be seen and guarded, and the bundle that the false
conmon names must not be trusted, although it belongs to root: it entitles to a GPU.
"""

import os
import pathlib

from attack_support import GuardCase, close_cgroup, conmon, container_id, heal_only
import engines
from engines import GPU_NODES, unique_name
from guarded import Plain, difference, ledger_entry, rules_of, wait_for_our_turn
from support import V1, V2, holdfast_json, remove_cgroup, run_suite


def setUpModule():
    wait_for_our_turn()


class CgroupNamedDeleted(GuardCase):
    def containers(self) -> list[dict]:
        return holdfast_json("ps")["containers"]

    def check_seen(self, hierarchy: pathlib.Path) -> None:
        name = unique_name("x") + " (deleted)"
        container = Plain(hierarchy, name, GPU_NODES)
        self.addCleanup(remove_cgroup, container.cgroup)
        self.addCleanup(container.close)
        self.enterContext(ledger_entry(name, GPU_NODES, cgroup=f"/{name}"))
        container.deny_all()
        seen = [one for one in self.containers() if one["cgroup"] == f"/{name}"]
        self.assertEqual([(one["pid"], one["id"], one["state"]) for one in seen], [(container.pid, name, "lost")])
        self.guard(config=heal_only(f"hf-e2e-x-{os.getpid()}-*"), containers=1)
        self.check_guarded(container)

    def test_a_container_in_it_is_seen_and_guarded_v1(self):
        self.check_seen(V1)

    def test_a_container_in_it_is_seen_and_guarded_v2(self):
        self.check_seen(V2)

    def test_a_false_monitor_in_it_is_not_trusted(self):
        victim = self.start(engines.oci, "v2", "runc")  # Its bundle belongs to root, and names three devices.
        inner = close_cgroup(self.cgroup(V2 / unique_name("inner")))
        own = self.cgroup(self.cgroup(self.cgroup(V2 / unique_name("parent")) / container_id()) / "x (deleted)")
        self.start(conmon, own, inner, "-c", inner.name, "-b", str(victim.bundle))
        before = rules_of(f"cgroup:{inner}")

        owed = {one["cgroup"]: one["owed"] for one in self.containers() if one["cgroup"].startswith("/hf-e2e-")}
        self.assertTrue(owed[f"/{victim.name}"], "the victim itself is owed what its bundle says")
        self.assertEqual(owed.get(f"/{inner.name}", []), [], "the bundle of the victim was trusted")
        other = self.owed(V2)
        self.guard(config=heal_only(f"hf-e2e-*-{os.getpid()}-*"), containers=2)
        self.check_guarded(other)
        self.assertEqual(difference(rules_of(f"cgroup:{inner}"), before), [], "devices of the victim were granted")


if __name__ == "__main__":
    run_suite(verbosity=1)
