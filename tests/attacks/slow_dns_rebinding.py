#!/usr/bin/env python3
"""Held: a hostile web page, open in a browser on this host, reads holdfastd over TCP.

It points a name of its own at 127.0.0.1 (DNS rebinding), or sends requests across sites. Every request whose Host is
not an address, localhost or the name of this host, or whose Origin is another host, gets 403 and no data of the host;
no reply lets other origins read it or frame it, and no method but GET and HEAD is served.
"""

import os

from attack_support import Answer, ServedCase, ask, connect
from guarded import eventually, wait_for_our_turn
from support import V2, run_suite

PATHS = ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events", "/readyz", "/nowhere")
FOREIGN_HOSTS = (
    "attacker.example", "attacker.example:{port}", "localhost.attacker.example:{port}", "127.0.0.1.attacker.example",
    "127.0.0.1.nip.io", "attacker.example@127.0.0.1", "127.0.0.1@attacker.example", "127.0.0.1#attacker.example",
    "127.0.0.1:{port}:80", "127.0.0.1/attacker", "localhost,attacker.example", "[::1].attacker.example",
    "[::1]attacker.example:{port}", "[attacker.example]", "[::1", "0x7f000001", "2130706433", "127.1", "x{name}",
    "{name}.attacker.example", "localhos", "localhost:port", ".", "",
)  # fmt: skip
FOREIGN_ORIGINS = (
    "http://attacker.example", "https://attacker.example:{port}", "null", "", "http://127.0.0.1", "http://127.0.0.1:1",
    "http://localhost:{port}", "http://127.0.0.1:{port}.attacker.example", "file://", "127.0.0.1:{port}",
    "http://attacker.example/http://127.0.0.1:{port}", "chrome-extension://127.0.0.1:{port}",
    "http://127.0.0.1:{port}/", "http://127.0.0.1:{port}, http://attacker.example",
)  # fmt: skip
OWN_HOSTS = (
    "127.0.0.1:{port}", "127.0.0.1", "localhost", "LOCALHOST:{port}", "[::1]:{port}", "{name}", "{name}:{port}",
)  # fmt: skip


def setUpModule():
    wait_for_our_turn()


class DnsRebinding(ServedCase):
    def setUp(self):
        super().setUp()
        self.guarded = self.container(V2)
        self.daemon = self.served().start(containers=1)
        shown = eventually(lambda: self.guarded.id in ask(self.daemon.socket, "/api/v1/snapshot").text)
        self.assertTrue(shown, "there is data to protect")

    def text_of(self, pattern: str) -> str:
        return pattern.format(port=self.daemon.port, name=os.uname().nodename)

    def raw(self, request: str) -> str:
        """All that the daemon sends until it closes the connection, or for two seconds."""
        with connect(self.daemon.port, 2) as client:
            client.sendall(request.encode())
            text = b""
            try:
                while part := client.recv(65536):
                    text += part
            except TimeoutError:
                pass
            return text.decode()

    def check_refused(self, answer: Answer, why: str) -> None:
        self.assertEqual(answer.status, 403, why)
        for leaked in (self.guarded.id, "holdfast_", "<html"):
            self.assertNotIn(leaked, answer.text, why)
        self.check_closed_to_others(answer, why)

    def check_closed_to_others(self, answer: Answer, why: str) -> None:
        self.assertEqual([name for name in answer.headers if name.startswith("access-control-")], [], why)
        self.assertEqual(answer.headers["cross-origin-resource-policy"], "same-origin", why)
        self.assertEqual(answer.headers["x-frame-options"], "DENY", why)
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff", why)
        self.assertIn("frame-ancestors 'none'", answer.headers["content-security-policy"], why)

    def test_names_of_others_are_refused(self):
        for pattern in FOREIGN_HOSTS:
            host = self.text_of(pattern)
            self.check_refused(ask(self.daemon.port, "/api/v1/snapshot", {"Host": host}), f"Host: {host}")
        for path in PATHS:
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                answer = ask(self.daemon.port, path, {"Host": "attacker.example"}, method)
                self.check_refused(answer, f"{method} {path}")

    def test_pages_of_others_are_refused(self):
        host = self.text_of("127.0.0.1:{port}")
        for pattern in FOREIGN_ORIGINS:
            origin = self.text_of(pattern)
            answer = ask(self.daemon.port, "/api/v1/snapshot", {"Host": host, "Origin": origin})
            self.check_refused(answer, f"Origin: {origin}")
        preflight = {"Host": host, "Origin": "http://attacker.example", "Access-Control-Request-Method": "GET"}
        for path in PATHS:
            self.check_refused(ask(self.daemon.port, path, preflight, "OPTIONS"), path)
            self.check_refused(ask(self.daemon.port, path, {"Host": host, "Origin": "http://attacker.example"}), path)

    def test_ambiguous_requests_are_refused(self):
        good, bad = self.text_of("Host: 127.0.0.1:{port}\r\n"), "Host: attacker.example\r\n"
        get = "GET /api/v1/snapshot HTTP/1.1\r\n"
        for head in (
            f"{get}{good}{bad}\r\n",
            f"{get}{bad}{good}\r\n",
            f"{get}{bad} {good}\r\n",
            f"{get}X: y\r\n\t{good}\r\n",
            f"{get}\r\n",
            f"{get}Host : 127.0.0.1\r\n\r\n",
            f"{get}{good}Origin: null\r\nOrigin: http://127.0.0.1\r\n\r\n",
            "GET /api/v1/snapshot HTTP/1.0\r\n\r\n",
            "GET /api/v1/snapshot\r\n\r\n",
            "GET /api/v1/snapshot HTTP/1.1\nHost: 127.0.0.1\n\n\r\n\r\n",
            f"GET http://attacker.example/api/v1/snapshot HTTP/1.1\r\n{good}\r\n",
        ):
            answer = self.raw(head)
            self.assertRegex(answer, r"^HTTP/1.1 40[03] ", head)
            self.assertNotIn(self.guarded.id, answer, head)

    def test_a_request_inside_a_body_is_not_answered(self):
        """A form of another site can send any text as the body of a POST."""
        good = self.text_of("Host: 127.0.0.1:{port}\r\n")
        inner = f"GET /api/v1/snapshot HTTP/1.1\r\n{good}\r\n"
        length = f"Content-Length: {len(inner)}\r\n"
        for head in (
            f"POST / HTTP/1.1\r\n{good}Origin: http://attacker.example\r\nContent-Type: text/plain\r\n{length}\r\n",
            f"GET / HTTP/1.1\r\n{good}{length}\r\n",
            f"GET / HTTP/1.1\r\n{good}Transfer-Encoding: chunked\r\n\r\n",
            f"POST /healthz HTTP/1.1\r\nHost: attacker.example\r\n{length}\r\n",
        ):
            self.assertNotIn(self.guarded.id, self.raw(head + inner), head)

    def test_no_method_but_get_and_head_is_served(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"):
            answer = ask(self.daemon.port, "/api/v1/snapshot", method=method)
            self.assertEqual(answer.status, 405, method)
            self.assertNotIn(self.guarded.id, answer.text)

    def test_the_daemons_own_page_works(self):
        for pattern in OWN_HOSTS:
            host = self.text_of(pattern)
            for origin in ({}, {"Origin": f"http://{host}"}, {"Origin": f"https://{host}"}):
                answer = ask(self.daemon.port, "/api/v1/snapshot", {"Host": host} | origin)
                self.assertEqual(answer.status, 200, (host, origin))
                self.assertIn(self.guarded.id, answer.text)
                self.check_closed_to_others(answer, host)


if __name__ == "__main__":
    run_suite(verbosity=1)
