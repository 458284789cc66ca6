#!/usr/bin/env python3
"""A local user plants a symlink, a FIFO or a file of its own where holdfastd is configured to keep its journal.

No symlink may be followed and no such file opened: files of root keep their content and mode, only root gets the
records, nothing hangs, and the guard heals without a journal.
"""

import os
import pathlib
import socket

from attack_support import NOBODY, ServedCase
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

CONTENT = "of root\n"


def setUpModule():
    wait_for_our_turn()


class PlantedJournal(ServedCase):
    def setUp(self):
        super().setUp()
        self.victim = self.directory() / "victim"
        self.victim.write_text(CONTENT)
        self.victim.chmod(0o600)
        self.guarded = self.container(V2)
        self.opener = self.open_all(self.guarded)

    def plant(self, kind: str, path: pathlib.Path) -> None:
        """Creates it as the attacker's."""
        if kind == "symlink":
            path.symlink_to(self.victim)
        elif kind == "symlink to nothing":
            path.symlink_to(self.victim.with_name("created"))
        elif kind == "symlink to a directory":
            path.symlink_to(self.victim.parent)
        elif kind == "FIFO":
            os.mkfifo(path, 0o666)
        elif kind == "file":
            path.touch(0o666)
        elif kind == "directory":
            path.mkdir()
        else:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def check(self, journal: pathlib.Path, planted: pathlib.Path) -> None:
        """The daemon heals, says that it has no journal, and touches nothing."""
        before = planted.lstat()
        daemon = self.served()
        daemon.command[daemon.command.index("--journal") + 1] = str(journal)
        try:
            daemon.start(containers=1)
            self.take(self.guarded)
            self.check_fine(self.opener, daemon.said())
            self.assertTrue(eventually(lambda: "no-journal" in daemon.said()), daemon.said())
            self.assertLess(daemon.stop(), 10, "nothing hangs")
        finally:
            daemon.kill()
        self.assertEqual(self.victim.read_text(), CONTENT)
        self.assertEqual(self.victim.stat().st_mode & 0o7777, 0o600)
        self.assertEqual(os.listdir(self.victim.parent), [self.victim.name], "nothing was created beside it")
        after = planted.lstat()
        for field in ("st_ino", "st_mode", "st_size"):
            self.assertEqual(getattr(after, field), getattr(before, field), f"{field} of what was planted")

    def test_a_file_of_the_journal(self):
        for kind in ("symlink", "symlink to nothing", "FIFO", "file", "directory", "socket"):
            for name in ("blame.jsonl", "blame.1.jsonl") if kind in ("symlink", "FIFO") else ("blame.jsonl",):
                with self.subTest(f"{name} is a {kind}"):
                    journal = self.directory()
                    self.plant(kind, journal / name)
                    self.check(journal, journal / name)

    def test_the_directory_of_the_journal(self):
        for kind in ("symlink to a directory", "symlink to nothing", "FIFO", "directory"):
            with self.subTest(kind):
                hostile = self.directory()
                self.plant(kind, hostile / "journal")
                os.chown(hostile, NOBODY, NOBODY)
                self.check(hostile / "journal", hostile / "journal")

    def test_a_directory_of_its_own_works(self):
        daemon = self.served()
        daemon.start(containers=1)
        self.take(self.guarded)
        self.assertTrue(eventually(daemon.records), daemon.said())
        self.assertNotIn("no-journal", daemon.said())
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
