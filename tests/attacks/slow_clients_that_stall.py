#!/usr/bin/env python3
"""Held: a local user opens hundreds of connections to holdfastd, and is silent, sends a byte at a time, or never reads.

Meanwhile others must be answered over TCP and the unix socket, containers must be healed, and neither the memory nor
the descriptors of the daemon may grow beyond its limits.
"""

import time

from attack_support import Served, ServedCase, ask, start_as_nobody
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

# Keeps `count` connections of one kind open, for ever: those that the daemon closes are opened again.
SLOW = r"""
port, kind, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
request = b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
whole = b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n"
def connected():
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.settimeout(5)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    return client
def is_open(client, turn):
    "Sends or reads as its kind does; False if the daemon has closed it."
    try:
        if kind == "slow": client.send(request[turn:turn + 1] or b"x")
        elif kind == "deaf": client.send(whole)
        elif kind == "silent" and client.recv(1) == b"": return False
    except BlockingIOError: pass
    return True
clients, turn = [], 0
while True:
    while len(clients) < count:
        try: clients.append(connected())
        except OSError: break
    left = []
    for client in clients:
        try: alive = is_open(client, turn)
        except OSError: alive = False
        if alive: left.append(client)
        else: client.close()
    clients = left
    turn += 1
    if turn == 1: print("ready", flush=True)
    time.sleep(0.05)
"""


def setUpModule():
    wait_for_our_turn()


class SlowClients(ServedCase):
    def start_clients(self, daemon: Served, kind: str, count: int) -> None:
        clients = start_as_nobody(SLOW, str(daemon.port), kind, str(count))
        self.addCleanup(clients.stdin.close)
        self.addCleanup(clients.stdout.close)
        self.addCleanup(clients.wait)
        self.addCleanup(clients.kill)
        self.assertEqual(clients.stdout.readline(), "ready\n")

    def seconds_of(self, place, path: str) -> float:
        began = time.monotonic()
        self.assertEqual(ask(place, path, seconds=60).status, 200)
        return time.monotonic() - began

    def check_serves_and_heals(self, daemon: Served, container, opener) -> None:
        worst = 0.0
        for mark in range(1, 4):
            for place in (daemon.port, daemon.socket):
                for path in ("/healthz", "/metrics", "/api/v1/snapshot"):
                    worst = max(worst, self.seconds_of(place, path))
            self.take(container, mark)
            self.check_fine(opener)
        self.assertLess(worst, 20, "others wait for slow clients")

    def test_slow_clients_do_not_harm_others(self):
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served().start(containers=1)
        self.assertTrue(eventually(lambda: ask(daemon.socket, "/readyz").status == 200))
        memory, descriptors = daemon.resident_kilobytes(), daemon.descriptors()
        spent, began = daemon.cpu_seconds(), time.monotonic()
        for kind, count in (("silent", 200), ("slow", 100), ("deaf", 100)):
            with self.subTest(kind):
                self.start_clients(daemon, kind, count)
                self.check_serves_and_heals(daemon, container, opener)
        self.assertLess(daemon.resident_kilobytes() - memory, 100_000)
        self.assertLess(daemon.descriptors() - descriptors, 160)
        self.assertGreater(daemon.descriptors() - descriptors, 20, "the connections are there")
        self.assertLess((daemon.cpu_seconds() - spent) / (time.monotonic() - began), 1.5)
        self.assertIsNone(daemon.process.poll())
        self.assertLess(daemon.stop(), 5)


if __name__ == "__main__":
    run_suite(verbosity=1)
