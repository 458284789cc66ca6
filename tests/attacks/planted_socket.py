#!/usr/bin/env python3
"""A local user plants a symlink, a FIFO, a file or a socket of its own where holdfastd opens its unix socket.

The directory belongs to the attacker. The daemon must neither follow nor replace what is there, change no mode, not
hang, say in its log that it does not listen there, and serve the port and heal all the same.
"""

import contextlib
import os
import pathlib
import socket

from attack_support import NOBODY, Served, ServedCase, ask
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite


def setUpModule():
    wait_for_our_turn()


class PlantedSocket(ServedCase):
    def setUp(self):
        super().setUp()
        self.victim = self.directory() / "victim"
        self.victim.write_text("root's own\n")
        self.victim.chmod(0o600)
        self.guarded = self.container(V2)
        self.opener = self.open_all(self.guarded)

    def plant(self, kind: str) -> pathlib.Path:
        directory = self.directory()
        path = directory / "holdfastd.sock"
        if kind == "symlink":
            path.symlink_to(self.victim)
        elif kind == "symlink to nothing":
            path.symlink_to(self.victim.with_name("created"))
        elif kind == "FIFO":
            os.mkfifo(path, 0o666)
        elif kind == "file":
            path.touch(0o666)
        elif kind == "directory":
            path.mkdir()
        else:
            listener = self.enterContext(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen()
        for created in (path, directory):
            os.chown(created, NOBODY, NOBODY, follow_symlinks=False)
        return path

    def is_served(self, daemon: Served) -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            return ask(daemon.port, "/healthz").status == 200
        return False

    def check_heals(self, daemon: Served) -> None:
        self.take(self.guarded)
        self.check_fine(self.opener, daemon.said())

    def test_what_is_planted_stays_as_it_is(self):
        for kind in ("symlink", "symlink to nothing", "FIFO", "file", "directory", "socket"):
            with self.subTest(kind):
                planted = self.plant(kind)
                before = planted.lstat()
                daemon = self.served()
                daemon.command[daemon.command.index("--socket") + 1] = str(planted)
                try:
                    daemon.start(containers=1)
                    self.check_heals(daemon)
                    self.assertTrue(eventually(lambda: "not-listening" in daemon.said()), daemon.said())
                    served = eventually(lambda: self.is_served(daemon), 10, 0.2)
                    self.assertTrue(served, f"the port is not served: {daemon.said()}")
                    self.assertLess(daemon.stop(), 10)
                finally:
                    daemon.kill()
                after = planted.lstat()
                for field in ("st_ino", "st_mode", "st_uid"):
                    self.assertEqual(getattr(after, field), getattr(before, field), field)
                self.assertEqual(self.victim.stat().st_mode & 0o7777, 0o600)
                self.assertEqual(os.listdir(self.victim.parent), [self.victim.name], "nothing was created beside it")

    def test_a_path_of_its_own_works(self):
        daemon = self.served().start(containers=1)
        self.check_heals(daemon)
        self.assertEqual(ask(daemon.socket, "/healthz").status, 200)
        self.assertNotIn("not-listening", daemon.said())
        daemon.stop()
        self.assertFalse(daemon.socket.exists(), "it removes its socket at its end")
        with socket.socket(socket.AF_UNIX) as left:  # of a daemon that was killed
            left.bind(str(daemon.socket))
        daemon.start()
        self.assertEqual(ask(daemon.socket, "/healthz").status, 200, "and replaces an old one of its own")


if __name__ == "__main__":
    run_suite(verbosity=1)
