#!/usr/bin/env python3
"""Our D-Bus client with a real systemd: devices given to a unit survive a reload, reloads are reported, nothing hangs."""

import contextlib
import errno
import os
import pathlib
import select
import signal
import subprocess
import time
import unittest

from support import HOLDFAST as BUS_TALK
from support import Case, errno_of_open, node, run_suite, which
from systemd_host import GPU, Systemd, systemd_host, why_no_systemd

UNIT = "holdfast-bus.scope"
STRICT = ("DevicePolicy=strict", "DeviceAllow=/dev/char/1:3 rwm")
ALLOW = f"allow {UNIT} c:{GPU[0]}:{GPU[1]}:rw"
READ = f"allow {UNIT}"  # nothing: it only reads what the unit allows
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Talk:
    """bus_talk, running beside the inner systemd; `say` returns its answer to a line, and `took` is the time in seconds that it needed."""

    def __init__(self, process: subprocess.Popen):
        self.process, self.took = process, 0.0

    def say(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], 30)[0]:
            raise RuntimeError(f"{line}: hangs")
        took, _, result = self.process.stdout.readline().strip().partition(" ")
        self.took = int(took) / 1000
        return result


@contextlib.contextmanager
def talk(host: Systemd, *before: str):
    """Runs a copy that every user may execute."""
    if not (host.root / "run/bus_talk").exists():
        host.run("install", "-m", "755", BUS_TALK, "/run/bus_talk")
    command = host.enter(*before, "/run/bus_talk")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Talk(process)
        finally:
            process.kill()


@contextlib.contextmanager
def scope(host: Systemd, *properties: str):
    """A scope with these properties, in which something sleeps; its cgroup."""
    command = ["systemd-run", "--scope", "--quiet", f"--unit={UNIT}"]
    command += [f"--property={each}" for each in properties]
    cgroup = host.cgroup / "system.slice" / UNIT
    process = subprocess.Popen(host.enter(*command, "sleep", "300"), stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while not (cgroup / "cgroup.procs").exists() or not (cgroup / "cgroup.procs").read_text():
            if time.monotonic() > end or process.poll() is not None:
                raise RuntimeError("the scope did not start")
            time.sleep(0.01)
        yield cgroup
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def stopped(host: Systemd):
    os.kill(host.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(host.pid, signal.SIGCONT)


class Bus(Case):
    def setUp(self):
        super().setUp()
        if reason := why_no_systemd() or (None if which("systemd-run") else "needs systemd-run"):
            self.skipTest(reason)

    def opens(self, cgroup: pathlib.Path) -> str:
        with node(*GPU) as path:
            return errno_of_open(cgroup, path)

    def listed(self, host: Systemd) -> set[str]:
        lines = host.systemctl("show", "-p", "DeviceAllow", UNIT).splitlines()
        return {line.removeprefix("DeviceAllow=") for line in lines} - {""}

    def assert_error(self, result: str, code: int):
        self.assertTrue(result.startswith(f"error {code} "), result)

    def check_reload(self, version: str):
        with systemd_host(version) as host, scope(host, *STRICT) as cgroup, talk(host) as bus:
            self.assertEqual(bus.say("open 5000"), "ok")
            self.assertEqual(bus.say("watch"), "ok")
            self.assertEqual(self.opens(cgroup), "EPERM")
            self.assertEqual(bus.say(ALLOW), "ok")
            self.assertEqual(self.opens(cgroup), "ENXIO")
            listed = {"/dev/char/1:3 rwm", "/dev/char/195:0 rw"}
            self.assertEqual(self.listed(host), listed)
            self.assertEqual(bus.say("take 100"), "ok", "a changed property is no reload")

            host.daemon_reload()
            self.assertEqual(bus.say("take 1500"), "ok begins ends")
            self.assertEqual(self.opens(cgroup), "ENXIO")
            self.assertEqual(self.listed(host), listed)

            host.systemctl("daemon-reexec")
            bus.say("take 1500")
            self.assertEqual(bus.say("state"), "gone")
            self.assert_error(bus.say(ALLOW), errno.ENOTCONN)
            self.assertEqual(bus.say("open 5000"), "ok")
            self.assertEqual(self.listed(host), listed)
            self.assertEqual(self.opens(cgroup), "ENXIO")

    def test_a_device_given_to_a_unit_survives_reloads_v2(self):
        self.check_reload("v2")

    def test_a_device_given_to_a_unit_survives_reloads_v1(self):
        self.check_reload("v1")

    def test_allowing_a_device_removes_nothing(self):
        with systemd_host("v2") as host, talk(host) as bus:
            self.assertEqual(bus.say("open 5000"), "ok")
            with scope(host, *STRICT, "DeviceAllow=/dev/char/195:0 m"):
                self.assertEqual(bus.say(f"allow {UNIT}"), "ok", "no device is no reset")
                self.assertEqual(bus.say(ALLOW), "ok")
                self.assertLessEqual({"/dev/char/1:3 rwm", "/dev/char/195:0 rwm"}, self.listed(host))
        with systemd_host("v2") as host, scope(host) as cgroup, talk(host) as bus:
            self.assertEqual(bus.say("open 5000"), "ok")
            self.assertEqual(bus.say(ALLOW), "ok")
            self.assertEqual(self.listed(host), set(), "a list would close a unit that has none")
            self.assertEqual(self.opens(cgroup), "ENXIO")

    def test_a_unit_that_is_not_there_or_cannot_be(self):
        with systemd_host("v2") as host, talk(host) as bus:
            self.assertEqual(bus.say("open 5000"), "ok")
            for line in ("allow gone.scope", "allow gone.scope c:195:0:rw", "allow gone.service", "allow gone@1.slice c:1:3:r"):
                self.assert_error(bus.say(line), errno.ENOENT)
            for line in ("allow a.target", "allow ../a.scope", "allow a*.scope c:195:0:rw", "allow \xff.scope"):
                self.assert_error(bus.say(line), errno.EINVAL)
            self.assertEqual(bus.say("state"), "connected")
            self.assertFalse((host.root / "run/systemd/transient/gone.scope.d").exists())

    def test_a_question_sent_right_after_the_authentication_is_answered(self):
        """systemd does not read data that came with the end of the authentication until more data comes."""
        with systemd_host("v2") as host, scope(host, *STRICT), talk(host) as bus:
            for _ in range(200):
                self.assertEqual(bus.say("open 3000"), "ok")
                self.assertEqual(bus.say(READ), "ok")

    def test_a_systemd_that_does_not_answer(self):
        with systemd_host("v2") as host, scope(host, *STRICT), talk(host) as bus, talk(host, *NOBODY) as shared, talk(host) as late:
            self.assertEqual(bus.say("open 300"), "ok")
            self.assertEqual(shared.say("open 300"), "ok")
            with stopped(host):
                for client, lines in ((bus, (READ, ALLOW, "watch")), (shared, (READ,)), (late, ("open 300",))):
                    for line in lines:
                        self.assert_error(client.say(line), errno.ETIMEDOUT)
                        self.assertGreaterEqual(client.took, 0.29)
                        self.assertLess(client.took, 10)  # without a limit it would be 30
                    self.assertEqual(bus.say("take 10"), "ok")
            self.assertEqual(bus.say("state"), "connected")
            self.assertEqual(bus.say(READ), "ok", "an answer that comes late is to another question")

    def test_a_user_other_than_root_uses_the_system_bus_and_may_only_read(self):
        with systemd_host("v2") as host, scope(host, *STRICT), talk(host, *NOBODY) as bus:
            self.assertEqual(bus.say("open 5000"), "ok")
            self.assertEqual(bus.say("watch"), "ok")
            self.assertEqual(bus.say(READ), "ok")
            self.assert_error(bus.say(ALLOW), errno.EACCES)
            host.daemon_reload()
            self.assertEqual(bus.say("take 1500"), "ok begins ends")
            host.systemctl("daemon-reexec")
            bus.say("take 1500")
            self.assertEqual(bus.say("state"), "gone")

    def test_root_uses_the_system_bus_where_systemds_own_socket_is_missing(self):
        with systemd_host("v2") as host, scope(host, *STRICT) as cgroup, talk(host) as bus:
            host.run("rm", "/run/systemd/private")
            self.assertEqual(bus.say("open 5000"), "ok")
            self.assertEqual(bus.say(ALLOW), "ok")
            self.assertEqual(self.opens(cgroup), "ENXIO")
            host.run("rm", "/run/dbus/system_bus_socket")
            self.assert_error(bus.say("open 5000"), errno.ENOENT)


if __name__ == "__main__":
    run_suite(verbosity=1)
