#!/usr/bin/env python3
"""Attack 19: a local user asks holdfastd over TCP for the command lines of processes that changed device rules.

Command lines hold passwords. Over TCP a record names the writer's program and none of its arguments, in the snapshot as
in the stream of events; the whole command line is only for users that may open the unix socket, or for all users if
the config says `web: {details: true}`.
"""

import contextlib
import grp
import json
import os
import pathlib
import secrets
import subprocess
import sys

from attack_support import NOBODY, Served, ServedCase, ask, connect, run_as_nobody
from guarded import ATTACK, eventually, policy, wait_for_our_turn
from support import V1, V2, run_suite

# Removes devices from the cgroup, and runs for a moment longer, as a runtime does.
SCRIPT = "writer-of-rules"
WRITER = r"""
import os, pathlib, sys, time
sys.path.insert(0, os.environ["ATTACK_DIRECTORY"])
import attack
cgroup = sys.argv[2]
if os.path.exists(cgroup + "/devices.deny"):
    for rule in ("c 195:0 rw", "c 195:255 rw"):
        pathlib.Path(cgroup, "devices.deny").write_text(rule)
else:
    attack.replace(os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY))
time.sleep(0.5)
"""

ASK = r"""
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as client:
    client.sendall(f"GET {sys.argv[2]} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    while part := client.recv(65536):
        sys.stdout.write(part.decode("latin-1"))
"""

CONNECT = r"""
client = socket.socket(socket.AF_UNIX)
try: client.connect(sys.argv[1]); print("connected")
except OSError as error: print(errno.errorcode[error.errno])
"""


def setUpModule():
    wait_for_our_turn()


def stream_of(place: int | pathlib.Path, container: str) -> str:
    """All events of the stream from its beginning up to one of the container."""
    text = b""
    with connect(place) as client:
        client.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while f'"id":"{container}"'.encode() not in text or not text.endswith(b"\n\n"):
            part = client.recv(65536)
            if not part:
                break
            text += part
    return text.decode()


class CommandLines(ServedCase):
    def attack(self, container) -> str:
        """By a program with a secret among its arguments: returns the secret."""
        secret = f"hunter2-{secrets.token_hex(8)}"
        writer = self.directory() / SCRIPT
        writer.write_text(WRITER)
        environment = os.environ | {"ATTACK_DIRECTORY": os.path.dirname(ATTACK)}
        command = [sys.executable, str(writer), f"--password={secret}", str(container.cgroup)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return secret

    def shown(self, place: int | pathlib.Path, container) -> list[dict]:
        """The container's records in the snapshot."""
        with contextlib.suppress(OSError):
            records = json.loads(ask(place, "/api/v1/snapshot").text)["records"]
            return [record for record in records if record.get("id") == container.id]
        return []

    def check_shows(self, daemon: Served, container, secret: str, place: int | pathlib.Path) -> None:
        found = eventually(lambda: secret in json.dumps(self.shown(place, container)), 20, 0.1)
        self.assertTrue(found, f"the snapshot has no command line: {self.shown(place, container)}\n{daemon.said()}")
        self.assertIn(secret, stream_of(place, container.id))

    def check_hides(self, daemon: Served, container, secret: str) -> None:
        """As a user without privilege, for every path."""
        program = pathlib.Path(sys.executable).name[:15]
        records = eventually(lambda: self.shown(daemon.port, container), 20, 0.1)
        self.assertTrue(records, "records themselves are shown")
        self.assertIn(program, [record["writer"].get("name") for record in records])
        for path in ("/api/v1/snapshot", "/metrics", "/", "/api/v1/snapshot?details=true"):
            answer = run_as_nobody(ASK, str(daemon.port), path)
            self.assertTrue(answer.startswith("HTTP/1.1 200"), answer[:300])
            for leaked in (secret, "--password", SCRIPT):
                self.assertNotIn(leaked, answer, path)
        events = stream_of(daemon.port, container.id)
        self.assertIn(f'"name":"{program}"', events)
        for leaked in (secret, "--password", SCRIPT):
            self.assertNotIn(leaked, events)

    def test_arguments_of_writers_are_only_on_the_socket(self):
        containers = [self.container(V1), self.container(V2)]
        daemon = self.served().start(containers=2)
        for container in containers:
            with self.subTest(container.cgroup.parent.name):
                secret = self.attack(container)
                self.check_shows(daemon, container, secret, daemon.socket)
                self.check_hides(daemon, container, secret)
                tag = ask(daemon.socket, "/api/v1/snapshot").headers["etag"]
                self.assertNotIn(secret, ask(daemon.port, "/api/v1/snapshot", {"If-None-Match": tag}).text)
                self.check_shows(daemon, container, secret, daemon.socket)  # the reply over TCP did not replace it
        with self.subTest("which users may open the socket"):
            mode = daemon.socket.stat()
            self.assertEqual(mode.st_mode & 0o777, 0o660)
            self.assertEqual(mode.st_uid, 0)
            self.assertNotEqual(mode.st_gid, NOBODY)
            with contextlib.suppress(KeyError):
                self.assertIn(mode.st_gid, (0, grp.getgrnam("holdfast").gr_gid))
            self.assertEqual(run_as_nobody(CONNECT, str(daemon.socket)), "EACCES\n")
        daemon.stop()

    def test_details_over_tcp_if_the_config_says_so(self):
        container = self.container(V2)
        daemon = self.served(config=policy() + "web: {details: true}\n").start(containers=1)
        secret = self.attack(container)
        self.check_shows(daemon, container, secret, daemon.port)
        self.assertEqual(run_as_nobody(CONNECT, str(daemon.socket)), "EACCES\n")
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
