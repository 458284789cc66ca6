#!/usr/bin/env python3
"""The demonstration, from the first container to the last cleaned up thing: with runc, with crun, with neither, and interrupted."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from ledger import LEDGER
from support import HOLDFAST, run_suite, which

TIMEOUT = 240


def command_line(pid: str) -> list[str]:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def processes() -> list[list[str]]:
    return [arguments for pid in os.listdir("/proc") if pid.isdigit() and (arguments := command_line(pid))]


def guards() -> list[list[str]]:
    return [arguments for arguments in processes() if pathlib.Path(arguments[0]).name == "holdfastd"]


def has_shields() -> bool:
    """Kernel 5.18 and later."""
    return tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 18)


def cgroup_points() -> list[str]:
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if re.search(r" - cgroup2? ", line)]


def blocks_interrupts(pid: int) -> bool:
    """From then on it ends in its own way."""
    blocked = re.search(r"^SigBlk:\t(\w+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
    return bool(int(blocked[1], 16) & 1 << (signal.SIGINT - 1))


def running_guard() -> int | None:
    """The one that holds the lock of this host."""
    try:
        inode = pathlib.Path("/run/holdfast/holdfastd.lock").stat().st_ino
    except FileNotFoundError:
        return None
    locks = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines()]
    return next((int(fields[4]) for fields in locks if fields[1] == "POSIX" and fields[5].endswith(f":{inode}")), None)


def leftovers() -> dict[str, list[str]]:
    """Whatever a demonstration could leave behind."""
    return {
        "cgroups": sorted(str(path) for point in cgroup_points() for path in pathlib.Path(point).glob("hf-demo-*")),
        "processes": [" ".join(arguments) for arguments in processes() if {"demo-inside", "demo-attack"} & set(arguments)],
        "guards": [" ".join(arguments) for arguments in guards() if any("holdfast-demo-" in argument for argument in arguments)],
        "mounts": [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if "f-demo-" in line],
        "directories": sorted(map(str, pathlib.Path("/tmp").glob("holdfast-demo-*"))),
        "ledger": sorted(map(str, LEDGER.glob("*hf-demo-*"))),
        "state": sorted(str(path) for name in ("runc", "crun") for path in pathlib.Path("/run", name).glob("hf-demo-*")),
    }


class Demo(unittest.TestCase):
    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("needs root")
        if not cgroup_points():
            self.skipTest("needs cgroups")
        if running_guard():
            self.skipTest("another holdfastd runs on this machine")
        self.before = leftovers()  # of a demonstration that was killed earlier
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="hf-e2e-")))

    def tearDown(self) -> None:
        self.assertEqual(leftovers(), self.before)

    def environment(self, *programs: str) -> dict[str, str]:
        """One in which no other programs are found than these."""
        for name in programs:
            if not (found := which(name)):
                self.skipTest(f"needs {name}")
            (self.directory / name).symlink_to(found)
        return os.environ | {"PATH": str(self.directory)}

    def start(self, *arguments: str, env: dict[str, str]) -> subprocess.Popen:
        return subprocess.Popen(
            [HOLDFAST, "demo", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )

    def finish(self, demo: subprocess.Popen, status: int) -> str:
        out, err = demo.communicate(timeout=TIMEOUT)
        self.assertEqual(demo.returncode, status, out + err)
        return out

    def check(self, report: dict, kinds: int | None) -> None:
        self.assertTrue(report["held"])
        self.assertFalse(report["interrupted"])
        for container in report["containers"]:
            guarded = container["guarded"]
            self.assertEqual(container["unguarded"]["refusal"], "EPERM")
            self.assertEqual(container["unguarded"]["finding"]["code"], "HF-101")
            self.assertGreater(container["unguarded"]["lost_ns"], 1_000_000_000)
            self.assertEqual(guarded["repaired"], guarded["attacks"])
            self.assertGreater(guarded["attacks"], 0)
            self.assertGreater(guarded["inside"]["opens"], 0)
            if container["hierarchy"] == "v2" and has_shields():
                self.assertGreater(guarded["held"], 0, container)
                self.assertEqual((guarded["loss"]["count"], guarded["inside"]["refused"]), (0, 0), container)
            else:
                self.assertGreater(guarded["loss"]["count"], 0, container)
            if kinds:
                self.assertEqual(set(guarded["attacks_by_kind"].values()), {kinds})

    def once(self, *programs: str) -> dict:
        report = json.loads(self.finish(self.start("--once", "-o", "json", env=self.environment(*programs)), 0))
        self.check(report, 1)
        return report

    def test_once_with_the_built_in_launcher(self):
        report = self.once()
        self.assertEqual({container["launcher"] for container in report["containers"]}, {"built-in"})

    def test_once_with_runc(self):
        report = self.once("runc")
        self.assertRegex(report["containers"][0]["launcher"], "^runc ")

    def test_once_with_crun(self):
        """On v2 crun may not be able to start: then the demo says why and uses its built-in launcher."""
        for container in self.once("crun")["containers"]:
            self.assertTrue(container["launcher"].startswith("crun ") or container["notes"], container)

    def test_for_some_seconds(self):
        report = json.loads(self.finish(self.start("--seconds", "3", "-o", "json", env=self.environment("runc")), 0))
        self.check(report, None)
        self.assertGreater(report["guarded_ms"], 2_000)

    def test_the_text_has_every_step(self):
        out = self.finish(self.start("--once", env=self.environment()), 0)
        for text in ("let through", "EPERM", "HF-101", "given back", "held: ", "holdfastd.service"):
            self.assertIn(text, out)
        self.assertNotIn("\033", out)

    def test_an_interruption_leaves_nothing_behind(self):
        for pause in (0.3, 2.0, 6.0):
            with self.subTest(pause=pause):
                demo = self.start("--seconds", "60", env=os.environ | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
                time.sleep(pause)
                end = time.monotonic() + 20
                while not blocks_interrupts(demo.pid) and time.monotonic() < end:
                    time.sleep(0.05)
                demo.send_signal(signal.SIGINT)
                self.finish(demo, 1)
                self.assertEqual(leftovers(), self.before)

    def test_a_closed_output_leaves_nothing_behind(self):
        demo = self.start("--seconds", "60", env=self.environment("runc"))
        demo.stdout.readline()
        demo.stdout.close()
        demo.stdout = None
        demo.wait(timeout=TIMEOUT)
        demo.stderr.close()
        self.assertNotEqual(demo.returncode, 0)

    def test_a_second_guard_is_refused(self):
        env = self.environment()
        with (self.directory / "config.yaml").open("w") as config:
            config.write("guard: {mode: observe}\nweb: {listen: none, socket: none}\n")
        daemon = pathlib.Path(HOLDFAST).parent.parent / "holdfastd/holdfastd"
        command = [daemon, "--config", self.directory / "config.yaml", "--journal", self.directory / "journal"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as other:
            try:
                end = time.monotonic() + 20
                while running_guard() != other.pid and time.monotonic() < end:
                    time.sleep(0.05)
                demo = self.start("--once", env=env)
                out, err = demo.communicate(timeout=TIMEOUT)
                self.assertEqual((demo.returncode, out), (2, ""))
                self.assertIn(f"holdfastd runs on this host already (pid {other.pid})", err)
            finally:
                other.terminate()

    def test_without_root_it_says_so(self):
        def become_nobody() -> None:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        program = self.directory / "holdfast"
        program.write_bytes(pathlib.Path(HOLDFAST).read_bytes())
        program.chmod(0o755)
        self.directory.chmod(0o755)
        done = subprocess.run(
            [program, "demo"], capture_output=True, text=True, timeout=TIMEOUT, check=False, preexec_fn=become_nobody
        )
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("needs root", done.stderr)


if __name__ == "__main__":
    run_suite(verbosity=1)
