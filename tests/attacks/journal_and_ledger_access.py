#!/usr/bin/env python3
"""A local user reads the journal of holdfastd, which holds command lines, or adds an entry to the ledger.

The ledger says which devices a container is owed. All files and directories that the daemon creates must be closed to
other users, whatever umask it was started with; an entry of a user in the ledger is not trusted.
"""

import os

from attack_support import NOBODY, ServedCase, run_as_nobody
import engines
from guarded import LEDGER, Plain, eventually, ledger_entry, wait_for_our_turn
from support import V2, remove_cgroup, run_suite

# Runs as an unprivileged process, and prints the result of each attempt on a line.
ATTEMPTS = r"""
def attempt(what, *arguments):
    try: what(*arguments); print("done:", what.__name__, *arguments)
    except OSError as error: print(errno.errorcode[error.errno])
journal, run = sys.argv[1:3]
for path in (journal, run + "/ledger"): attempt(os.listdir, path)
for name in ("blame.jsonl", "blame.1.jsonl"):
    attempt(os.open, journal + "/" + name, os.O_RDONLY)
    attempt(os.open, journal + "/" + name, os.O_WRONLY)
for path in (journal, run, run + "/ledger"):
    attempt(os.open, path + "/planted.json", os.O_WRONLY | os.O_CREAT, 0o666)
    attempt(os.symlink, "/etc/passwd", path + "/planted.json")
    attempt(os.mkdir, path + "/planted")
    attempt(os.rename, path, path + ".moved")
for name in ("status.json", "holdfastd.sock"):
    attempt(os.unlink, run + "/" + name)
    attempt(os.open, run + "/" + name, os.O_WRONLY)
"""


def setUpModule():
    wait_for_our_turn()


class JournalAndLedger(ServedCase):
    def test_other_users_reach_neither(self):
        daemon = self.served(before=("sh", "-c", 'umask 0; exec "$@"', "sh"))
        daemon.journal.rmdir()  # so that the daemon creates it, like the directory of the ledger
        daemon.start()
        container = self.container(V2)
        opener = self.open_all(container)
        eventually(lambda: self.take(container) or daemon.records(container.id, action="healed"), 20, 0.5)
        self.check_fine(opener)
        self.assertTrue(daemon.records(container.id, action="healed"), daemon.said())

        said = run_as_nobody(ATTEMPTS, str(daemon.journal), str(LEDGER.parent))
        self.assertEqual([line for line in said.splitlines() if line not in ("EACCES", "EPERM", "ENOENT")], [])
        directories = (daemon.journal, LEDGER.parent, LEDGER)
        for path in (*directories, *(file for directory in directories for file in directory.iterdir())):
            status = path.lstat()
            self.assertEqual(status.st_uid, 0, path)
            if not path.is_socket():
                self.assertEqual(status.st_mode & 0o022, 0, f"{path} has mode {status.st_mode:o}")
        for path in (daemon.journal, daemon.journal / "blame.jsonl", LEDGER, LEDGER / f"{container.id}.json"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, f"{path} has mode {path.stat().st_mode:o}")
        daemon.stop()

    def test_an_entry_that_others_could_write_gives_nothing(self):
        """Also one that is a symlink, or that others may write."""
        containers = {}
        for kind in ("owner", "group", "others", "link"):
            name = engines.unique_name(kind)
            container = Plain(V2, name, engines.GPU_NODES)
            self.addCleanup(remove_cgroup, container.cgroup)
            self.addCleanup(container.close)
            file = self.enterContext(ledger_entry(name, engines.GPU_NODES, cgroup=f"/{name}"))
            container.deny_all()
            containers[kind] = container
            if kind == "owner":
                os.chown(file, NOBODY, NOBODY)
            elif kind == "link":
                elsewhere = self.directory() / "entry.json"
                elsewhere.write_bytes(file.read_bytes())
                file.unlink()
                file.symlink_to(elsewhere)
            else:
                file.chmod(0o620 if kind == "group" else 0o602)
        honest = self.container(V2)
        self.take(honest)
        opener = self.open_all(honest)
        daemon = self.served().start()
        self.check_fine(opener, "an entry of root is trusted")
        for kind, container in containers.items():
            with self.subTest(kind):
                opened = self.open_all(container).look()["last"]
                self.assertEqual(set(opened.values()), {"EPERM"}, f"{opened}\n{daemon.said()}")
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
