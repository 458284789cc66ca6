#!/usr/bin/env python3
"""A local user opens streams of events, reads nothing from them, and sends data on them without end.

What a client sends on a stream has no meaning, so holdfastd must not keep it: its memory must not grow with what any
local user sends. Others are served and containers are healed meanwhile.
"""

import json
import select
import subprocess
import sys
import time

from attack_support import Served, ServedCase, ask, start_as_nobody
from guarded import ATTACK, eventually, policy, wait_for_our_turn
from support import V2, run_suite

STREAMS = 4
BYTES = 100 << 20

# Each child is another writer, hence a separate record.
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
    time.sleep(0.002)
"""

# Requests all events that the daemon still has, reads none of them, and sends so many bytes, or for so many seconds.
SENDER = r"""
port, count, most, seconds = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
clients = []
for _ in range(count):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    client.setblocking(False)
    clients.append(client)
time.sleep(0.5)
print("ready", flush=True)
sent, data, end = 0, bytes(1 << 20), time.monotonic() + seconds
while clients and sent < most and time.monotonic() < end:
    for client in select.select([], clients, [], 0.1)[1]:
        try: sent += client.send(data)
        except OSError: clients.remove(client)
print(sent, flush=True)
sys.stdin.read()
"""


def setUpModule():
    wait_for_our_turn()


class StreamThatSends(ServedCase):
    def records(self, daemon: Served) -> int:
        return len(json.loads(ask(daemon.socket, "/api/v1/snapshot").text)["records"])

    def test_what_is_sent_on_a_stream_is_not_kept(self):
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served(config=policy("heal", "{burst: 1000, per_second: 1000}")).start(containers=1)
        command = [sys.executable, "-c", WRITERS, ATTACK, str(container.cgroup), "400"]
        subprocess.run(command, check=True, timeout=120)
        self.assertTrue(eventually(lambda: self.records(daemon) >= 300, 30, 0.2), f"{self.records(daemon)} records")
        time.sleep(1)
        memory = daemon.resident_kilobytes()

        sender = start_as_nobody(SENDER, str(daemon.port), str(STREAMS), str(BYTES), "15")
        self.addCleanup(sender.stdin.close)
        self.addCleanup(sender.stdout.close)
        self.addCleanup(sender.wait)
        self.addCleanup(sender.kill)
        self.assertEqual(sender.stdout.readline(), "ready\n")
        while not select.select([sender.stdout], [], [], 0.1)[0]:
            self.assertEqual(ask(daemon.socket, "/healthz").status, 200)
        sent = int(sender.stdout.readline())
        self.assertGreater(sent, 1 << 20, "the attack was carried out")
        grown = (daemon.resident_kilobytes() - memory) << 10
        self.assertLess(grown, (20 << 20) + sent / 4, f"the daemon keeps what is sent to it, {sent} bytes")
        self.take(container, 1000)
        self.check_fine(opener)
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
