#!/usr/bin/env python3
"""Attack 9: six containers that are owed a device are frozen, so that a probe from inside of them never ends.

The attacker is a user who may freeze containers (docker pause, or a delegated cgroup). A survey waits for each of
them, and the time it waited counted as its cost. A new container that loses its GPU must be guarded within seconds
all the same, and so must those that are there.
"""


from attack_support import GuardCase, SECONDS_TO_GUARD
from engines import CGROUPS, unique_name
from guarded import Plain, difference, eventually, owed_rules, rules_of, wait_for_our_turn
from support import V1, V2, run_suite

FREEZER = CGROUPS / "freezer"


def setUpModule():
    wait_for_our_turn()


class FrozenContainers(GuardCase):
    def freeze_v2(self, container: Plain) -> None:
        (container.cgroup / "cgroup.freeze").write_text("1")

    def freeze_v1(self, container: Plain) -> None:
        if not FREEZER.exists():
            return
        cgroup = self.cgroup(FREEZER / container.id)
        self.addCleanup((cgroup / "freezer.state").write_text, "THAWED")
        (cgroup / "cgroup.procs").write_text(str(container.pid))
        (cgroup / "freezer.state").write_text("FROZEN")

    def test_a_new_container_is_guarded_within_seconds(self):
        old = self.owed(V1, unique_name("old"))
        frozen = [self.owed(V2, unique_name("frozen")) for _ in range(6)]
        for container in frozen:
            self.freeze_v2(container)
        self.freeze_v1(self.owed(V1, unique_name("frozen")))
        self.guard()
        for hierarchy in (V2, V1):
            seconds = self.seconds_until_guarded(self.owed(hierarchy, unique_name("new")), 20)
            self.assertLess(seconds, SECONDS_TO_GUARD, f"on {hierarchy.name}")
        self.check_guarded(old)
        self.take(frozen[0], 1)
        self.assertTrue(eventually(lambda: rules_are_restored(frozen[0])), "a frozen container is healed as well")


def rules_are_restored(container: Plain) -> bool:
    return not difference(rules_of(f"cgroup:{container.cgroup}"), container.left + owed_rules(container.nodes))


if __name__ == "__main__":
    run_suite(verbosity=1)
