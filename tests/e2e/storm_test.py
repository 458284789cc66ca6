#!/usr/bin/env python3
"""A storm: many containers attacked all the time while holdfastd is killed at random moments. On v2, behind the shield, no open of an owed device fails
at any time; in the end nothing is lost, wider or leaked.

Short by default; HOLDFAST_STORM=long makes it 100 containers and 10,000 attacks.
"""

import os
import pathlib
import random
import sys
import tempfile
import time
import unittest

import attack
from engines import GPU_NODES as NODES
from engines import unique_name
from guarded import (
    HOLDFASTD,
    Daemon,
    Plain,
    difference,
    eventually,
    ledger_entry,
    opening,
    other_guards,
    owed_rules,
    policy,
    remove_shields,
    rules_of,
    wait_for_our_turn,
)
from support import V1, V2, Case, remove_cgroup, run_suite

IS_LONG = os.environ.get("HOLDFAST_STORM") == "long"
CONTAINERS, ATTACKS = (100, 10_000) if IS_LONG else (12, 600)
OPENERS = 8 if IS_LONG else 3
OWED = owed_rules(NODES)
UNDER_KILLS = 0.6  # of the attacks; the rest is for one daemon that lives, to see what it keeps


def setUpModule():
    wait_for_our_turn()


class Attacker:
    """All ways to remove devices, chosen at random, without a process for each."""

    def __init__(self, containers: list[Plain], seed: int):
        self.chance = random.Random(seed)
        self.containers = containers
        self.groups = {one.id: os.open(one.cgroup, os.O_RDONLY | os.O_DIRECTORY) for one in containers if not one.is_v1}
        self.done = 0

    def attack(self) -> None:
        container = self.chance.choice(self.containers)
        self.done += 1
        if container.is_v1:
            for major, minor in NODES.values():
                (container.cgroup / "devices.deny").write_text(f"c {major}:{minor} rw")
            return
        way = self.chance.choice((attack.deny, attack.replace, attack.exchange))
        try:
            # Some programs are new, some were seen before.
            way(self.groups[container.id], self.chance.randrange(40) if self.chance.random() < 0.5 else self.done + 1000)
        finally:
            attack.close_programs()

    def close(self) -> None:
        for group in self.groups.values():
            os.close(group)


class Storm(Case):
    def setUp(self):
        super().setUp()
        if not eventually(lambda: not other_guards(), 60, 0.5):
            self.skipTest(f"another guard is at work on this machine: process {other_guards()[0]}")
        self.addCleanup(remove_shields)

    def populate(self) -> list[Plain]:
        containers = []
        shielded = V2 / unique_name("parent")
        shielded.mkdir()
        self.addCleanup(remove_cgroup, shielded)
        for count in range(CONTAINERS):
            parent = (V1, shielded)[count % 2]
            container = Plain(parent, unique_name("storm"), NODES)
            self.addCleanup(remove_cgroup, container.cgroup)
            self.addCleanup(container.close)
            path = container.cgroup.relative_to(V1 if container.is_v1 else V2)
            self.enterContext(ledger_entry(container.id, NODES, cgroup=f"/{path}"))
            container.deny_all()
            containers.append(container)
        return containers

    def wrong(self, containers: list[Plain]) -> dict[str, list[str]]:
        """What is less or more than what the attackers left and what is owed, by container."""
        found = {one.id: difference(rules_of(f"pid:{one.pid}"), one.left + OWED) for one in containers}
        return {name: differences for name, differences in found.items() if differences}

    def settle(self, containers: list[Plain]) -> None:
        if not eventually(lambda: not self.wrong(containers), 20, 0.5):
            self.fail(f"{self.wrong(containers)}")

    def test_nothing_is_lost_wider_or_leaked(self):
        programs_before = attack.device_programs()
        containers = self.populate()
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-storm-")))
        daemon = Daemon(HOLDFASTD, directory)
        daemon.config.write_text(policy("heal", "{burst: 100000, per_second: 10000}"))  # No container is slowed down here.
        self.addCleanup(daemon.kill)
        daemon.start(CONTAINERS)
        self.settle(containers)
        inside = [one for one in containers if not one.is_v1][:OPENERS]
        openers = [self.enterContext(opening(one.pid, one.cgroups(), list(NODES))) for one in inside]
        self.assertNotIn("EPERM", openers[0].look()["last"].values())
        for opener in openers:
            opener.look()

        attacker = Attacker(containers, seed=7)
        self.addCleanup(attacker.close)
        chance, kills = random.Random(8), 0
        began = time.monotonic()
        while attacker.done < ATTACKS * UNDER_KILLS:
            until = attacker.done + chance.randrange(1, max(2, ATTACKS // 50))
            while attacker.done < until:
                attacker.attack()
                time.sleep(chance.choice((0, 0, 0.0005, 0.002)))
            daemon.kill()
            kills += 1
            for _ in range(chance.randrange(5)):
                attacker.attack()
            daemon.launch() if chance.random() < 0.5 else daemon.start()
        daemon.kill()
        daemon.start(CONTAINERS)
        self.settle(containers)

        time.sleep(1)
        first = (daemon.descriptors(), daemon.resident_kilobytes())
        spent = daemon.cpu_seconds()
        calm = attacker.done
        while attacker.done < ATTACKS:
            attacker.attack()
            time.sleep(chance.choice((0, 0.0005, 0.002)))
        time.sleep(1)
        self.settle(containers)
        seconds = time.monotonic() - began
        last = (daemon.descriptors(), daemon.resident_kilobytes())
        spent = daemon.cpu_seconds() - spent
        held = len(attack.device_programs() - programs_before)
        piled = max(len(attack.attached(group)) for group in attacker.groups.values())
        losses = sorted(record["loss_ns"] for record in daemon.records(action="healed") if "loss_ns" in record)
        print(
            f"{CONTAINERS} containers, {attacker.done} attacks, {kills} kills in {seconds:.0f} s; descriptors {first[0]} -> {last[0]}, "
            f"RSS {first[1]} -> {last[1]} kB over the last {attacker.done - calm} attacks, which cost {spent:.2f} s of CPU; "
            f"{held} programs while it runs, at most {piled} on a cgroup; loss by {len(losses)} records: "
            f"median {losses[len(losses) // 2] / 1e3:.0f} µs, 99 % {losses[len(losses) * 99 // 100] / 1e3:.0f} µs, most {losses[-1] / 1e3:.0f} µs",
            file=sys.stderr,
        )
        opens = [opener.look()["counts"] for opener in openers]
        print(f"seen by programs in {len(openers)} containers of v2: {sum(sum(counts.values()) for counts in opens)} opens, {sum(counts.get('EPERM', 0) for counts in opens)} refused", file=sys.stderr)
        self.assertEqual([counts.get("EPERM", 0) for counts in opens], [0] * len(openers), "the shield leaves no window, also while no daemon runs")
        self.assertLess(piled, 8)
        self.assertLess(last[0], first[0] + CONTAINERS * 2 + 300, "descriptors")
        self.assertLess(last[1], first[1] + 20_000, "kilobytes")
        self.assertLess(held, CONTAINERS * 4 + 600, "programs")
        self.assertLess(daemon.stop(), 10)
        self.assertIn("removed the shield from", remove_shields())
        attached = sum(len(attack.attached(group)) for group in attacker.groups.values())
        left = eventually(lambda: len(attack.device_programs() - programs_before) <= attached and [True])
        self.assertTrue(left, f"{len(attack.device_programs() - programs_before)} programs are left, {attached} are attached")


if __name__ == "__main__":
    run_suite(verbosity=1)
