#!/usr/bin/env python3
"""Attack 18: holdfastd is started as root without the capabilities it needs, as by a wrong unit or pod spec.

It cannot restore anything then, so it must not seem ready: /readyz must answer 503 and name what is missing, as long
as it is missing, while /healthz says that the process lives. With its capabilities it is ready.
"""

import contextlib

from attack_support import Served, ServedCase, ask
from guarded import eventually, wait_for_our_turn
from support import V2, which, run_suite


def setUpModule():
    wait_for_our_turn()


class MissingCapabilities(ServedCase):
    def setUp(self):
        super().setUp()
        if not which("setpriv"):
            self.skipTest("needs setpriv")

    def readiness(self, daemon: Served) -> tuple[int, str]:
        with contextlib.suppress(OSError):
            answer = ask(daemon.socket, "/readyz")
            return answer.status, answer.text
        return 0, ""

    def without(self, dropped: str) -> Served:
        daemon = self.served(before=(which("setpriv"), "--bounding-set", dropped, "--inh-caps", dropped))
        daemon.launch()
        self.assertTrue(eventually(lambda: self.readiness(daemon)[0], 30), f"it serves nothing: {daemon.said()}")
        return daemon

    def check_not_ready(self, daemon: Served, *names: str) -> None:
        """Also when it has had time for its first survey."""
        eventually(lambda: daemon.ready() is not None, 60, 0.1)
        eventually(lambda: all(name in self.readiness(daemon)[1] for name in names), 60, 0.1)
        status, text = self.readiness(daemon)
        self.assertEqual(status, 503, f"{text}\n{daemon.said()}")
        for name in names:
            self.assertIn(name, text)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertEqual(ask(daemon.socket, "/healthz").status, 200)
        self.assertEqual(ask(daemon.port, "/readyz").status, 503)

    def test_without_any_capability(self):
        daemon = self.without("-all")
        self.check_not_ready(daemon, "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SYS_PTRACE")

    def test_without_one_that_it_needs(self):
        for name in ("sys_admin", "sys_ptrace"):
            with self.subTest(name):
                daemon = self.without(f"-{name}")
                self.check_not_ready(daemon, f"CAP_{name.upper()}")
                self.assertNotIn("CAP_SETUID", self.readiness(daemon)[1], "what it has is not missing")
                daemon.kill()

    def test_with_its_capabilities_it_is_ready_and_heals(self):
        """Those of root on this host, and no more than the ones it lists."""
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served().start(containers=1)
        self.assertTrue(eventually(lambda: self.readiness(daemon)[0] == 200, 20, 0.1), self.readiness(daemon))
        self.take(container)
        self.check_fine(opener)
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
