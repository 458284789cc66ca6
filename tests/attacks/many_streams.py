#!/usr/bin/env python3
"""Held: a local user opens more streams of events than are allowed, and does not read them.

Sixteen are served, the others get 503 at once. Losses are healed and reported to clients that read, the daemon does not
wait for those that do not, and closed streams can be opened again.
"""

import contextlib
import pathlib
import socket

from attack_support import Served, ServedCase, ask, connect, start_as_nobody
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

STREAM_LIMIT = 16

# Opens streams, prints their statuses, and never reads more; ends with its standard input.
STREAMS = r"""
port, count = int(sys.argv[1]), int(sys.argv[2])
clients, statuses = [], []
for _ in range(count):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.settimeout(20)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    statuses.append(int(client.recv(12).split()[1]))
    clients.append(client)
print(json.dumps(statuses), flush=True)
sys.stdin.read()
"""


def setUpModule():
    wait_for_our_turn()


def read_until(client: socket.socket, text: str) -> str:
    read = b""
    with contextlib.suppress(TimeoutError):
        while text.encode() not in read and (part := client.recv(65536)):
            read += part
    return read.decode()


class ManyStreams(ServedCase):
    def open_streams(self, daemon: Served, count: int):
        clients = start_as_nobody(STREAMS, str(daemon.port), str(count))
        self.addCleanup(clients.stdout.close)
        self.addCleanup(clients.wait)
        self.addCleanup(clients.kill)
        statuses = [int(status) for status in clients.stdout.readline().strip("[]\n").split(",")]
        return clients, statuses

    def stream(self, place: int | pathlib.Path) -> socket.socket:
        client = self.enterContext(connect(place, 20))
        client.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return client

    def test_twenty_streams_that_are_not_read(self):
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served().start(containers=1)
        reader = self.stream(daemon.port)
        self.assertIn(" 200 ", read_until(reader, "retry:"))
        memory = daemon.resident_kilobytes()
        clients, statuses = self.open_streams(daemon, 20)
        self.assertEqual(statuses, [200] * (STREAM_LIMIT - 1) + [503] * (20 - STREAM_LIMIT + 1))

        for mark in range(1, 11):
            self.take(container, mark)
            self.check_fine(opener, "it heals")
            self.assertIn(container.id, read_until(reader, container.id), "a client that reads gets the event")
            self.assertEqual(ask(daemon.port, "/api/v1/events").status, 503)
            with self.stream(daemon.socket) as own:
                self.assertIn(" 200 ", read_until(own, "retry:"), "root's programs have streams of their own")
            for place in (daemon.port, daemon.socket):
                self.assertEqual(ask(place, "/metrics").status, 200)
        self.assertLess(daemon.resident_kilobytes() - memory, 100_000)

        clients.stdin.close()
        clients.wait()
        free = eventually(lambda: " 200 " in read_until(self.stream(daemon.port), "\r\n"), 20, 0.2)
        self.assertTrue(free, "a stream can be opened again")
        self.assertLess(daemon.stop(), 10, "open streams do not delay its end")


if __name__ == "__main__":
    run_suite(verbosity=1)
