#!/usr/bin/env python3
"""The sandbox of the packaged systemd unit, from the other side: it must not disable the guard.

holdfastd runs under a real systemd by exactly the packaged unit. It still heals, probes containers from inside, creates
a device node, hardens a unit and reloads its config, on cgroup v1 and v2, answers /readyz with 200, and neither it nor
a child of it is killed by the filter of system calls.
"""

import json
import pathlib
import re
import subprocess
import sys
import time
import unittest

import attack_support  # parses the arguments, and adds the end-to-end tests to the module path
import guard_test
from guarded import HOLDFASTD, eventually, is_sanitized, wait_for_our_turn
from support import HOLDFAST, which, run_suite
from systemd_host import FUSE, NODES, Systemd

UNIT = pathlib.Path(attack_support.__file__).resolve().parents[2] / "packaging/holdfastd.service"
UNITS = "/run/systemd/system"
PLACE = "/run/hf-attack"  # the unit hides /tmp and /home, where the program may be
PORT = 9465  # of the packaged config, in a network namespace of this test

ASK = r"""
import socket, sys
client = socket.socket(socket.AF_INET if sys.argv[1] == "tcp" else socket.AF_UNIX)
client.settimeout(10)
client.connect(("127.0.0.1", int(sys.argv[2])) if sys.argv[1] == "tcp" else sys.argv[2])
client.sendall(f"GET {sys.argv[3]} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
text = b""
while part := client.recv(65536): text += part
print(text.decode())
"""


def setUpModule():
    wait_for_our_turn()


class Unit(guard_test.Units):
    def install(self, host: Systemd) -> None:
        """The unit as it is packaged; a drop-in names the program under test and where its log goes."""
        program = f"{PLACE}/holdfastd"
        host.run("sh", "-c", f"mkdir -p {PLACE} && touch {program} && mount --bind {HOLDFASTD} {program}")
        host.run("sh", "-c", f"cat >{UNITS}/holdfastd.service <'{UNIT}'")
        lines = ["[Service]", "ExecStart=", f"ExecStart={program}", f"StandardError=append:{PLACE}/log"]
        if is_sanitized():  # It searches for leaks by ptrace at its end, and needs several times the memory.
            lines += ["Environment=ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=1", "MemoryMax=2G"]
        text = "\n".join(lines)
        drop_ins = f"{UNITS}/holdfastd.service.d"
        host.run("sh", "-c", f"mkdir -p {drop_ins} && cat >{drop_ins}/test.conf <<'U'\n{text}\nU")
        host.daemon_reload()

    def log(self, host: Systemd) -> str:
        file = host.root / PLACE.lstrip("/") / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def show(self, host: Systemd, name: str) -> str:
        return host.systemctl("show", "holdfastd", f"--property={name}", "--value").strip()

    def ask(self, host: Systemd, path: str, *place: str) -> str:
        return host.run(sys.executable, "-c", ASK, *(place or ("tcp", str(PORT))), path, check=False).stdout

    def killed_by_filter(self, since: float) -> list[str]:
        """Lines of the kernel's log; if it does not report kills, the other checks must show them."""
        done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
        found = []
        for line in done.stdout.splitlines():
            moment = re.match(r"\[ *(\d+\.\d+)\]", line)
            if moment and float(moment[1]) >= since and "type=1326" in line and "holdfast" in line:
                found.append(line)
        return found

    def records(self, host: Systemd) -> list[dict]:
        done = host.run(HOLDFAST, "blame", "-o", "json", check=False)
        return json.loads(done.stdout)["records"] if done.stdout else []

    def snapshot(self, host: Systemd) -> dict:
        _, _, body = self.ask(host, "/api/v1/snapshot").partition("\n\n")
        return json.loads(body) if body else {}

    def shown(self, host: Systemd) -> list[str]:
        return [container["id"] for container in self.snapshot(host).get("containers", [])]

    def is_probed_and_fine(self, host: Systemd, container) -> bool:
        for shown in self.snapshot(host).get("containers", []):
            for node in shown["nodes"] if shown["id"] == container.name else []:
                if node["path"] == NODES[FUSE]:
                    return node.get("troubled") is False
        return False

    def check(self, version: str) -> None:
        host, container = self.boot(version)
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        host.run("ip", "link", "set", "lo", "up")
        self.install(host)
        node = pathlib.Path(f"/proc/{container.pid}/root{NODES[FUSE]}")
        node.unlink()
        host.systemctl("start", "holdfastd")  # returns when it is ready
        pid = self.show(host, "MainPID")

        with self.subTest("it is ready"):
            for place in (("tcp", str(PORT)), ("unix", "/run/holdfast/holdfastd.sock")):
                answer = eventually(lambda: "200 OK" in (said := self.ask(host, "/readyz", *place)) and said, 20, 0.2)
                self.assertTrue(answer, f"{self.ask(host, '/readyz', *place)}\n{self.log(host)}")
        with self.subTest("it creates a device node"):
            self.assertTrue(eventually(node.exists, 30, 0.1), self.log(host))
            self.assertTrue(node.is_char_device())
        with self.subTest("it restores what the reload of systemd removed"):
            self.assertTrue(eventually(lambda: container.opens(FUSE) == "ok", 20, 0.1), self.log(host))
        with self.subTest("it heals by events"):
            host.run(HOLDFAST, "revoke", container.name, "c 10:229 rw", check=False)
            self.assertTrue(eventually(lambda: container.opens(FUSE) == "ok", 20, 0.1), self.log(host))
            actions = [record["action"] for record in self.records(host)]
            self.assertTrue({"healed", "shielded"} & set(actions), actions)
        with self.subTest("it hardens the unit of the container"):
            hardened = eventually(lambda: "/dev/char/10:229 rw" in " ".join(container.show("DeviceAllow")), 30, 0.2)
            self.assertTrue(hardened, self.log(host))
        with self.subTest("it reads its config again"):
            host.systemctl("reload", "holdfastd")
            self.assertTrue(eventually(lambda: "config-read" in self.log(host), 20, 0.1), self.log(host))
        with self.subTest("it probes containers from inside"):
            self.assertTrue(eventually(lambda: self.is_probed_and_fine(host, container), 60, 0.5), self.snapshot(host))
        with self.subTest("a container that starts later is found"), host.container() as later:
            self.assertTrue(eventually(lambda: later.name in self.shown(host), 60, 0.5), self.log(host))
        with self.subTest("nothing was killed"):
            self.assertEqual(self.show(host, "MainPID"), pid)
            self.assertEqual(self.show(host, "NRestarts"), "0")
            self.assertEqual(self.killed_by_filter(began), [])
            self.assertNotIn("no-journal", self.log(host))
            self.assertNotIn("no-status", self.log(host))
        host.systemctl("stop", "holdfastd")
        self.assertEqual(self.show(host, "Result"), "success", self.log(host))
        self.assertEqual(container.opens(FUSE), "ok")

    def setUp(self):
        super().setUp()
        if not which("ip"):
            self.skipTest("needs ip")

    def test_v1(self):
        self.check("v1")

    def test_v2(self):
        self.check("v2")


def load_tests(loader, _, __):
    """Only these: the base class has tests as well."""
    return unittest.TestSuite(Unit(name) for name in ("test_v1", "test_v2"))


if __name__ == "__main__":
    run_suite(verbosity=1)
