#!/usr/bin/env python3
"""Suspicion: a flaw in the HTTP server, which any local user can talk to, yields the capabilities of its thread.

Capabilities belong to threads: one that started before the daemon dropped its own keeps all of root's. No thread may
have more than the unit lists, none may gain privileges by exec, and the thread that serves HTTP has none at all.
"""

import pathlib
import re

from attack_support import Served, ServedCase, ask
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

UNIT = pathlib.Path(__file__).resolve().parents[2] / "packaging/holdfastd.service"
NUMBERS = {
    "CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_FOWNER": 3, "CAP_KILL": 5, "CAP_SETGID": 6,
    "CAP_SETUID": 7, "CAP_SETPCAP": 8, "CAP_NET_ADMIN": 12, "CAP_SYS_CHROOT": 18, "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23, "CAP_SYS_RESOURCE": 24, "CAP_MKNOD": 27, "CAP_SYSLOG": 34,
    "CAP_PERFMON": 38, "CAP_BPF": 39,
}  # fmt: skip
USEFUL = ("CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYSLOG")  # for what systemd does under the unit


def setUpModule():
    wait_for_our_turn()


def listed() -> int:
    """The capabilities that the daemon may keep, as bits."""
    text = UNIT.read_text().replace("\\\n", " ")
    names = " ".join(re.findall(r"^CapabilityBoundingSet=(.+)$", text, re.M)).split()
    return sum(1 << NUMBERS[name] for name in {*names, *USEFUL})


def threads(daemon: Served) -> dict[str, dict[str, str]]:
    """The lines of /proc/PID/task/TID/status, by the thread's name and number."""
    found = {}
    for task in pathlib.Path(f"/proc/{daemon.pid()}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        status = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
        found[f"{status['Name']} {task.name}"] = status
    return found


class CapabilitiesOfThreads(ServedCase):
    def running(self) -> Served:
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served().start(containers=1)
        self.take(container)
        self.check_fine(opener, "it heals with what is left to it")
        self.assertEqual(ask(daemon.port, "/healthz").status, 200)
        self.assertTrue(eventually(lambda: ask(daemon.port, "/readyz").status == 200, 20, 0.1))
        return daemon

    def test_no_thread_has_more_than_the_unit_lists(self):
        daemon = self.running()
        for name, status in threads(daemon).items():
            with self.subTest(name):
                for kind in ("CapEff", "CapPrm", "CapBnd"):
                    self.assertEqual(int(status[kind], 16) & ~listed(), 0, f"{kind} is {status[kind]}")
                for kind in ("CapInh", "CapAmb"):
                    self.assertEqual(int(status[kind], 16), 0, f"{kind} is {status[kind]}")
                self.assertEqual(status["NoNewPrivs"], "1")
        daemon.stop()

    def test_the_thread_that_serves_http_has_no_capability(self):
        daemon = self.running()
        found = {name: status for name, status in threads(daemon).items() if status["Name"].startswith("hf-web")}
        self.assertEqual(len(found), 1, list(threads(daemon)))
        for name, status in found.items():
            for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                self.assertEqual(int(status[kind], 16), 0, f"{name}: {kind} is {status[kind]}")
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
