#!/usr/bin/env python3
"""Held, and more: names with quotes, HTML, line breaks, escape sequences and broken UTF-8 reach users and programs.

The attacker names containers, cgroups, images and processes. The snapshot must stay JSON, the metrics must parse line
by line, an event must stay one event and a log line one line, and no control character reaches a terminal or the log.
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import unicodedata

from attack_support import Served, ServedCase, ask, connect
import engines
from engines import Unavailable
from guarded import ATTACK, Plain, eventually, ledger_entry, wait_for_our_turn
from support import HOLDFAST, V1, V2, remove_cgroup, run_suite

BOLD = "\x04SHOUT"  # holdfast's internal marker for bold text
WICKED = (
    "\"}'\\<script>alert(1)<b> {x=\"1\"} 1 %s $(id) `id`"
    "\x1b[31m\x1b]0;title\x07\r\t\x08\x7f\x01\x02\x03\x05" + BOLD + "\x9b31m\x85\x90q"
)
BREAKS = "a\nb\n\ndata: forged\nid: 9\n# TYPE forged counter\nforged 1\n2026-01-01T00:00:00.000 info forged\u2028x"
BROKEN = b"\xff\xfe\x80\xc3(\xed\xa0\x80\x9b31m\xf4\x90\x80\x80\x1b[31m\"'<b>"
FORGED = re.compile(r"^(forged|data: forged|id: 9$|2026-01-01T00:00:00.000)", re.M)
SAMPLE = re.compile(r'^[a-z_]+(\{([a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,(?!\})|(?=\})))+\})? (\+Inf|[-+.e0-9]+)$')
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} (info|warning|error) [a-z-]+")

# A process with a hostile name removes devices.
WRITER = r"""
import os, pathlib, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import attack
pathlib.Path("/proc/self/comm").write_bytes(b'"}\n\x1b[1m\x04\xff\x9b<i')
cgroup = os.fsencode(sys.argv[2])
if os.path.exists(cgroup + b"/devices.deny"):
    for rule in ("c 195:0 rw", "c 195:255 rw"):
        with open(cgroup + b"/devices.deny", "w") as file: file.write(rule)
else:
    attack.replace(os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY))
time.sleep(0.2)
"""


def setUpModule():
    wait_for_our_turn()


def controls_in(said: bytes) -> str:
    """Control characters of both ranges except the line break, and bytes that are not UTF-8; "" if there are none."""
    text = said.decode(errors="surrogateescape")
    found = {one for one in text if one != "\n" and unicodedata.category(one) in ("Cc", "Cs")}
    return ascii("".join(sorted(found))).strip("'")


def on_terminal(*command: str) -> bytes:
    """The output of a program whose standard output is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    said = b""
    with contextlib.suppress(OSError):  # EIO at its end
        while part := os.read(master, 65536):
            said += part
    process.wait(timeout=60)
    os.close(master)
    return said.replace(b"\r\n", b"\n")


class HostileNames(ServedCase):
    def named(self, hierarchy: pathlib.Path, name: bytes) -> Plain:
        """A container whose cgroup has this name; it is moved there, because a shell cannot write the name."""
        container = Plain(hierarchy, engines.unique_name("plain"), engines.GPU_NODES)
        cgroup = hierarchy / os.fsdecode(name)
        for path in (container.cgroup, cgroup):
            self.addCleanup(remove_cgroup, path)
        self.addCleanup(container.close)
        cgroup.mkdir()
        (cgroup / "cgroup.procs").write_text(str(container.pid))
        container.cgroup.rmdir()
        container.cgroup, container.id = cgroup, os.fsdecode(name)
        return container

    def owed(self, hierarchy: pathlib.Path, name: str) -> Plain:
        """Owed its devices, and guarded: the config's pattern fits the name."""
        container = self.named(hierarchy, f"hf-e2e-{name}-{os.getpid()}-{hierarchy.name}".encode())
        self.enterContext(ledger_entry(container.id, engines.GPU_NODES, cgroup=f"/{container.id}"))
        container.restrict()
        return container

    def annotated(self) -> str:
        """A container of runc whose image, pod and container have hostile names: its id."""
        try:
            runc, name = engines.program("runc"), engines.unique_name("runc")
            directory, view = self.enterContext(engines.scratch_directory()), self.enterContext(engines.view("v1"))
        except Unavailable as error:
            self.skipTest(str(error))
        engines.write_bundle(directory, f"/{name}", True)
        spec = json.loads((directory / "config.json").read_text())
        keys = ("image-name", "sandbox-name", "sandbox-namespace", "container-name")
        spec["annotations"] = {f"io.kubernetes.cri.{key}": f"{key} {BREAKS}{WICKED}" for key in keys}
        (directory / "config.json").write_text(json.dumps(spec))
        view.cgroups.add(f"/{name}")
        self.enterContext(engines.cleanup(lambda: view.call(runc, "--root", "/run/runc", "delete", "-f", name)))
        view.call(runc, "--root", "/run/runc", "run", "-d", "--bundle", str(directory), name)
        return name

    def attack(self, container: Plain) -> None:
        subprocess.run([sys.executable, "-c", WRITER, ATTACK, str(container.cgroup)], check=True, timeout=60)

    def check_snapshot(self, daemon: Served) -> None:
        """All containers are in it, and the losses of two."""

        def shown() -> dict:
            snapshot = json.loads(ask(daemon.port, "/api/v1/snapshot").body.decode())
            wicked = [container for container in snapshot["containers"] if "script" in container["id"]]
            images = [container for container in snapshot["containers"] if "script" in container.get("image", "")]
            return snapshot if len(wicked) == 2 and len(images) == 1 and len(snapshot["records"]) >= 2 else {}

        snapshot = eventually(shown, 30, 0.2)
        self.assertTrue(snapshot, f"not all is shown: {ask(daemon.port, '/api/v1/snapshot').text}")

    def check_metrics(self, daemon: Served) -> None:
        body = ask(daemon.port, "/metrics").body
        self.assertEqual(controls_in(body), "")
        samples = [line for line in body.decode().rstrip("\n").split("\n") if not line.startswith("# ")]
        for line in samples:
            self.assertRegex(line, SAMPLE)
            self.assertTrue(line.startswith("holdfast_"), line)
        series = [line.rpartition(" ")[0] for line in samples]
        self.assertEqual(len(series), len(set(series)), "no series twice")
        self.assertIn(b"holdfast_losses_total{", body)
        self.assertIn(b"script", body, "the hostile names are there")

    def check_events(self, daemon: Served, losses: int) -> None:
        text = b""
        with connect(daemon.port) as client:
            client.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while text.count(b"\ndata: {") < losses and (part := client.recv(65536)):
                text += part
        for line in text.partition(b"\r\n\r\n")[2].decode().split("\n"):
            self.assertRegex(line, r"^(|:.*|retry: \d+|id: \d+|event: lost|data: \{.*\})$")
            if line.startswith("data: "):
                json.loads(line[6:])

    def check_log(self, daemon: Served) -> None:
        said = daemon.log.read_bytes()
        self.assertEqual(controls_in(said), "")
        for line in said.decode().rstrip("\n").split("\n"):
            self.assertRegex(line, LOG_LINE)
        self.assertNotRegex(said.decode(), FORGED)
        self.assertIn(b"script", said, "the hostile names are there")

    def check_json_log(self, daemon: Served) -> None:
        said = daemon.log.read_bytes()
        self.assertEqual(controls_in(said), "")
        for line in said.decode().rstrip("\n").split("\n"):
            self.assertEqual(set(json.loads(line)), {"time", "level", "message"}, line)

    def check_program(self, *arguments: str) -> None:
        done = subprocess.run([HOLDFAST, *arguments], capture_output=True, timeout=60, check=False)
        for said in (done.stdout, done.stderr):
            self.assertEqual(controls_in(said), "")
            self.assertNotRegex(said.decode(), FORGED)
        self.assertIn(b"script", done.stdout, "the hostile names are there")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        shown = on_terminal(str(HOLDFAST), *arguments)
        self.assertEqual(controls_in(re.sub(rb"\x1b\[(0|1|31|32|33)m", b"", shown)), "")
        self.assertFalse(b"\x1b[1mSHOUT" in shown, "a name colours the terminal")

    def setUp(self):
        super().setUp()
        self.owed_ones = [self.owed(V1, WICKED), self.owed(V2, WICKED)]
        self.named(V2, b"hf-" + BROKEN)
        self.annotated()

    def attacked(self, *options: str) -> Served:
        """A daemon that has healed a loss of each hostile container."""
        daemon = self.served(*options).start(containers=2)
        for container in self.owed_ones:
            self.attack(container)
        self.assertTrue(eventually(lambda: len([r for r in daemon.records() if r["action"] in ("healed", "shielded")]) >= 2), daemon.said())
        return daemon

    def test_http(self):
        daemon = self.attacked()
        self.check_snapshot(daemon)
        self.check_metrics(daemon)
        self.check_events(daemon, 2)

    def test_the_log(self):
        for format_, check in (("text", self.check_log), ("json", self.check_json_log)):
            with self.subTest(format_):
                daemon = self.attacked("--log", format_)
                daemon.stop()
                check(daemon)

    def test_a_terminal(self):
        daemon = self.attacked()
        daemon.stop()
        blame = ["blame", "--journal", str(daemon.journal)]
        explain = ["explain", self.owed_ones[0].id]
        for arguments in (["ps"], ["ps", "-o", "wide"], ["doctor"], explain, ["rules"], blame):
            with self.subTest(arguments[0]):
                self.check_program(*arguments)
        for arguments in (["ps"], ["doctor"], ["rules"], blame):
            with self.subTest(f"{arguments[0]} -o json"):
                command = [HOLDFAST, *arguments, "-o", "json"]
                done = subprocess.run(command, capture_output=True, timeout=60, check=False)
                json.loads(done.stdout.decode())


if __name__ == "__main__":
    run_suite(verbosity=1)
