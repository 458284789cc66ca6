#!/usr/bin/env python3
"""The reader of holdfastd's log stops: a log collector hangs, its disk is full, or a user floods it; the pipe fills up.

The log may lose lines then. The guard must go on healing, also after SIGHUP, keep its journal and its snapshot up to
date, and end at SIGTERM.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

from attack_support import Served, ServedCase, ask
from guarded import ATTACK, eventually, policy, wait_for_our_turn
from support import V2, run_suite

LOSSES = 60  # each is a line of the log
PIPE = 4096  # bytes: fewer than the lines

# Each child is another writer, hence a separate line.
WRITERS = r"""
import os, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import attack
for mark in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        attack.replace(os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY), mark)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.01)
"""


def setUpModule():
    wait_for_our_turn()


class BlockedLog(ServedCase):
    def launch_into_pipe(self, daemon: Served) -> None:
        """No process reads the other end."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE)
        daemon.process = subprocess.Popen(daemon.command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
        os.close(writer)

    def is_ready(self, daemon: Served) -> bool:
        with contextlib.suppress(OSError):
            return ask(daemon.socket, "/readyz").status == 200
        return False

    def shown(self, daemon: Served) -> list[dict]:
        return json.loads(ask(daemon.socket, "/api/v1/snapshot").text)["records"]

    def test_the_guard_goes_on(self):
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served(config=policy("heal", "{burst: 1000, per_second: 1000}"))
        self.launch_into_pipe(daemon)
        self.assertTrue(eventually(lambda: self.is_ready(daemon), 60, 0.1))
        command = [sys.executable, "-c", WRITERS, ATTACK, str(container.cgroup), str(LOSSES)]
        subprocess.run(command, check=True, timeout=60)
        self.check_fine(opener, "it heals")
        with self.subTest("the journal and the snapshot go on"):
            eventually(lambda: len(daemon.records(container.id)) >= LOSSES // 2, 60, 0.1)
            self.assertGreaterEqual(len(daemon.records(container.id)), LOSSES // 2)
            eventually(lambda: len(self.shown(daemon)) >= LOSSES // 2, 60, 0.1)
            self.assertGreaterEqual(len(self.shown(daemon)), LOSSES // 2)
        with self.subTest("it heals after it has read its config again"):
            daemon.tell(signal.SIGHUP)
            time.sleep(0.5)
            self.take(container, LOSSES + 1)
            self.check_fine(opener)
        with self.subTest("it ends at SIGTERM"):
            daemon.tell(signal.SIGTERM)
            eventually(lambda: daemon.process.poll() is not None, 60)
            self.assertEqual(daemon.process.poll(), 0, "its exit code, and None as long as it runs")


if __name__ == "__main__":
    run_suite(verbosity=1)
