#!/usr/bin/env python3
"""Held: a process without privileges calls itself conmon and names the bundle of another container.

The attacker is a user whose process is the parent of the first process of a pid namespace; `-b` on its command line
names a bundle of root that entitles to a GPU. Another attacker is root, but in a container. Neither container may be
owed or given anything; the container of a monitor process of root on the host, with the same options, is.
"""

import os
import pathlib

from attack_support import NOBODY, GuardCase, close_cgroup, conmon, container_id, heal_only
from engines import GPU_NODES, need, unique_name, write_bundle
from guarded import Plain, difference, eventually, owed_rules, rule, rules_of, wait_for_our_turn
from support import V2, holdfast_json, remove_cgroup, run_suite


def setUpModule():
    wait_for_our_turn()


class ForgedConmon(GuardCase):
    def setUp(self):
        super().setUp()
        need("busybox")
        self.bundle = self.directory()  # only root may write to it
        self.bundle.chmod(0o755)
        write_bundle(self.bundle, "", gpu=True)

    def monitored(self, own: pathlib.Path | str = "", uid: int = 0) -> pathlib.Path:
        """The cgroup of a container whose monitor process names that bundle."""
        inner = close_cgroup(self.cgroup(V2 / unique_name("inner")))
        os.chown(inner / "cgroup.procs", uid, uid)
        self.start(conmon, own, inner, "-c", inner.name, "-n", "name", "-b", str(self.bundle), uid=uid)
        return inner

    def owed_to(self, cgroup: pathlib.Path) -> list[str]:
        found = [one for one in holdfast_json("ps")["containers"] if one["cgroup"] == f"/{cgroup.name}"]
        self.assertEqual(len(found), 1, "the container is seen")
        return [node["path"] for node in found[0]["owed"]]

    def check_refused(self, cgroup: pathlib.Path) -> None:
        self.assertEqual(self.owed_to(cgroup), [])
        genuine, other = self.monitored(), self.owed(V2)
        self.assertIn("/dev/nvidia0", self.owed_to(genuine), "a real monitor process is trusted")
        before = rules_of(f"cgroup:{cgroup}")
        self.guard(config=heal_only(f"hf-e2e-*-{os.getpid()}-*"), containers=2)
        self.check_guarded(other)
        healed = lambda: not difference(rules_of(f"cgroup:{genuine}"), closed_but_for_gpus())
        self.assertTrue(eventually(healed, 60, 0.2), "and its container is given what it is owed")
        self.assertEqual(difference(rules_of(f"cgroup:{cgroup}"), before), [])

    def test_a_user(self):
        self.check_refused(self.monitored(self.delegated(V2 / unique_name("user")), NOBODY))

    def test_root_in_a_container(self):
        """It has the host's root directory and pid namespace: a privileged container with hostPID."""
        outer = Plain(V2, container_id(), {})
        self.addCleanup(remove_cgroup, outer.cgroup)
        self.addCleanup(outer.close)
        self.check_refused(self.monitored(outer.cgroup))


def closed_but_for_gpus() -> list[dict]:
    return [rule("c 1:* rwm"), rule("b 1:* rwm"), *owed_rules(GPU_NODES)]


if __name__ == "__main__":
    run_suite(verbosity=1)
