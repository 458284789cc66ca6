#!/usr/bin/env python3
"""Attack 11: a user's cgroup, and one within another container, are named like the 64-digit id of a victim's container.

The attacker may divide a cgroup, as every user of systemd may, or is root in a container. The id, and a prefix
of it, must still mean the victim: `heal`, `explain`, `rules`, `grant` and `revoke` work on it and on nothing else.
"""

import json
import pathlib
import subprocess

from attack_support import GuardCase, container_id, start_as_nobody
from engines import unique_name
from guarded import Plain, difference, owed_rules, rules_of, wait_for_our_turn
from support import V1, V2, holdfast, remove_cgroup, run_suite

# In a cgroup of the user: creates a cgroup with the given name, and in that the first process of a pid namespace.
USER = r"""
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, 9)
os.mkdir(sys.argv[1])
if libc.unshare(0x10000000 | 0x20000000 | 0x00020000) != 0: sys.exit("unshare")
if os.fork() == 0:
    libc.prctl(1, 9)
    open(sys.argv[1] + "/cgroup.procs", "w").write("0")
    print("ready", flush=True)
while True: time.sleep(60)
"""


def setUpModule():
    wait_for_our_turn()


class CgroupNamedLikeAnotherId(GuardCase):
    def attack_as_user(self, hierarchy: pathlib.Path, name: str) -> None:
        cgroup = self.delegated(hierarchy / unique_name("user"))
        enter = lambda: (cgroup / "cgroup.procs").write_text("0")
        attacker = start_as_nobody(USER, f"{cgroup}/{name}", preexec_fn=enter, stderr=subprocess.STDOUT)
        self.addCleanup(attacker.stdout.close)
        self.addCleanup(attacker.stdin.close)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        if (said := attacker.stdout.readline()) != "ready\n":
            self.skipTest(f"a user without privileges cannot have such a process here: {said}")

    def attack_as_container(self, hierarchy: pathlib.Path, name: str) -> None:
        """Root in a container that may divide its own cgroup."""
        outer = Plain(hierarchy, container_id(), {})
        self.addCleanup(remove_cgroup, outer.cgroup)
        self.addCleanup(outer.close)
        nested = Plain(outer.cgroup, name, {})
        self.addCleanup(nested.close)

    def run_json(self, *arguments: str) -> dict:
        done = holdfast(*arguments, "-o", "json")
        self.assertIn(done.returncode, (0, 1), f"holdfast {' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout)

    def check_named(self, victim: Plain, name: str) -> None:
        """By its id or a prefix of it."""
        self.take(victim)
        self.assertEqual(self.run_json("explain", name)["container"]["pid"], victim.pid)
        gates = [gate["cgroup"] for gate in self.run_json("rules", name)["gates"] if gate["own"]]
        self.assertIn(str(victim.cgroup), gates)
        for verb, access in (("grant", "c 195:7 rw"), ("revoke", "c 1:* rwm")):
            steps = self.run_json(verb, "--dry-run", name, access)["steps"]
            self.assertIn(str(victim.cgroup), str(steps))
        dry = self.run_json("heal", "--dry-run", name)["containers"]
        self.assertEqual([len(dry), bool(dry[0]["steps"])], [1, True], dry)
        self.healed(name)
        self.assertEqual(difference(rules_of(f"cgroup:{victim.cgroup}"), victim.left + owed_rules(victim.nodes)), [])

    def check(self, hierarchy: pathlib.Path, attack) -> None:
        victim = self.owed(self.cgroup(hierarchy / unique_name("engine")), container_id())
        attack(hierarchy, victim.id)
        self.check_named(victim, victim.id)
        self.check_named(victim, victim.id[:12])

    def test_a_users_cgroup_on_v2(self):
        self.check(V2, self.attack_as_user)

    def test_a_users_cgroup_on_v1(self):
        self.check(V1, self.attack_as_user)

    def test_a_nested_container_on_v2(self):
        self.check(V2, self.attack_as_container)

    def test_a_nested_container_on_v1(self):
        self.check(V1, self.attack_as_container)

    def test_without_such_a_cgroup(self):
        for hierarchy in (V1, V2):
            self.check(hierarchy, lambda *_: None)

    def test_an_ambiguous_prefix_is_refused(self):
        """Two containers of root share it."""
        parent, prefix = self.cgroup(V2 / unique_name("engine")), container_id()[:20]
        for _ in range(2):
            self.owed(parent, (prefix + container_id())[:64])
        self.assertEqual(holdfast("explain", prefix).returncode, 2)


if __name__ == "__main__":
    run_suite(verbosity=1)
