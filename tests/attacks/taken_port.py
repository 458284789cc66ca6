#!/usr/bin/env python3
"""Attack 14: a user's process takes the port of holdfastd before the daemon starts, and serves forged metrics.

The unix socket must be served all the same, the log must say that the port is taken, and as soon as the port is free
the daemon must serve on it by itself. No other process may share the port with the daemon afterwards.
"""

import contextlib
import time

from attack_support import Served, ServedCase, ask, run_as_nobody, start_as_nobody
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

FORGED = "holdfast_blind 0\nforged 1\n"

OCCUPIER = r"""
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(64)
print("taken", flush=True)
reply = "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(sys.argv[2]), sys.argv[2])
while True:
    client, _ = listener.accept()
    client.recv(65536)
    client.sendall(reply.encode())
    client.close()
"""

# Prints "taken" if a second process can listen on the port of the daemon.
SHARER = r"""
for host in ("127.0.0.1", "0.0.0.0"):
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                listener.bind((host, int(sys.argv[1])))
                listener.listen(64)
                print("taken", host)
            except OSError:
                pass
"""


def setUpModule():
    wait_for_our_turn()


class TakenPort(ServedCase):
    def start_occupier(self, port: int):
        occupier = start_as_nobody(OCCUPIER, str(port), FORGED)
        self.addCleanup(occupier.stdin.close)
        self.addCleanup(occupier.stdout.close)
        self.addCleanup(occupier.wait)
        self.addCleanup(occupier.kill)
        self.assertEqual(occupier.stdout.readline(), "taken\n")
        return occupier

    def complaints(self, daemon: Served) -> list[str]:
        address = f"127.0.0.1:{daemon.port}"
        return [line for line in daemon.said().splitlines() if "not-listening" in line and address in line]

    def metrics(self, daemon: Served) -> str:
        with contextlib.suppress(OSError):
            return ask(daemon.port, "/metrics", seconds=5).text
        return ""

    def test_the_socket_is_served_and_the_port_as_soon_as_it_is_free(self):
        container = self.container(V2)
        opener = self.open_all(container)
        daemon = self.served()
        occupier = self.start_occupier(daemon.port)
        daemon.start(containers=1)

        self.assertTrue(eventually(daemon.socket.exists, 60), f"the unix socket is not there: {daemon.said()}")
        self.assertEqual(ask(daemon.socket, "/healthz").status, 200)
        self.assertIn("holdfast_build_info", ask(daemon.socket, "/metrics").text)
        self.assertEqual(self.metrics(daemon), FORGED, "the attack works as long as the port is the attacker's")
        self.take(container)
        self.check_fine(opener, "it heals meanwhile")
        time.sleep(2)
        self.assertEqual(len(self.complaints(daemon)), 1, daemon.said())

        occupier.kill()
        occupier.wait()
        self.assertTrue(eventually(lambda: "holdfast_build_info" in self.metrics(daemon), 30, 0.1), daemon.said())
        self.assertEqual(ask(daemon.socket, "/healthz").status, 200, "and the socket as before")
        self.assertEqual(len(self.complaints(daemon)), 1, daemon.said())
        self.assertEqual(run_as_nobody(SHARER, str(daemon.port)), "", "no other process listens beside the daemon")
        daemon.stop()

    def test_a_free_port_is_served_at_once(self):
        daemon = self.served().start()
        self.assertIn("holdfast_build_info", self.metrics(daemon))
        self.assertEqual(self.complaints(daemon), [])
        daemon.stop()


if __name__ == "__main__":
    run_suite(verbosity=1)
