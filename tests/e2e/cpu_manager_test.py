#!/usr/bin/env python3
"""The CPU manager of holdfastd with real containers: who gets which CPUs, what the kernel reports, and what survives."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import engines
from guarded import HOLDFASTD, eventually, guarding, is_sanitized, opening, policy, run_inside
from support import HOLDFAST, V2, holdfast, run_suite, why_not
from systemd_host import systemd_host, why_no_systemd

RUNTIME = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and "/" in sys.argv[1] else "holdfast-runtime"
STATE = pathlib.Path("/run/holdfast/cpus")
CPUSET = pathlib.Path("/sys/fs/cgroup/cpuset")
CONFIG = policy() + "cpus: {manager: true, reserved: 0}\n"
ONE = ("--label", "holdfast.cpus=1")
ONE_BY_ANNOTATION = ("--annotation", "holdfast.cpus=1")


def cpuset_of(container: engines.Container) -> pathlib.Path:
    for line in pathlib.Path(f"/proc/{container.pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "cpuset":
            return CPUSET / path.lstrip("/")
    raise engines.Unavailable("cpuset is not a v1 controller here")


def cpus_of(container: engines.Container) -> str:
    return (cpuset_of(container) / "cpuset.cpus").read_text().strip()


def status(*arguments: str, code: int | None = None) -> dict:
    done = holdfast("cpu", "status", *arguments, "-o", "json")
    if code is not None:
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def status_of(container: engines.Container) -> dict:
    return next(one for one in status()["containers"] if one["id"] == container.id)


@contextlib.contextmanager
def asking(runtime: str, annotations: dict[str, str]):
    """A container of plain runc or crun with these annotations in its bundle."""
    original = engines.write_bundle

    def write(directory, cgroup, gpu):
        original(directory, cgroup, gpu)
        file = directory / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"annotations": annotations}))

    engines.write_bundle = write
    try:
        with engines.oci("v1", runtime) as container:
            engines.write_bundle = original
            yield container
    finally:
        engines.write_bundle = original


def age_of(pid: int) -> float:
    """Seconds since its start."""
    started = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


@unittest.skipUnless(os.cpu_count() >= 2, "needs two CPUs")
@unittest.skipUnless((CPUSET / "cpuset.cpus").exists(), "cpuset is not a v1 controller here: tests/gpu/cpu_manager_test.sh runs on v2")
class CpuManager(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(STATE, ignore_errors=True)
        self.addCleanup(shutil.rmtree, STATE, ignore_errors=True)
        self.all = (CPUSET / "cpuset.cpus").read_text().strip()
        self.last = self.all.rpartition("-")[2]
        self.pool = "0" if self.last == "1" else f"0-{int(self.last) - 1}"

    def wait(self, container, cpus: str, daemon=None):
        seen = eventually(lambda: cpus_of(container) == cpus)
        self.assertTrue(seen, f"{container.engine} has {cpus_of(container)}, not {cpus}: {daemon.said() if daemon else ''}")

    def own(self, container, daemon=None) -> str:
        """The CPUs that it got, outside the pool of the others."""
        self.assertTrue(eventually(lambda: cpus_of(container) not in (self.all, "0")), daemon.said() if daemon else "")
        return cpus_of(container)

    def check_exclusive(self, start):
        """Beside a container that shares: while the other one lives, each is alone on its CPUs; then all are shared again."""
        with guarding(HOLDFASTD, config=CONFIG) as daemon, engines.oci("v1", "runc") as sharing:
            with start() as container:
                own = self.own(container, daemon)
                self.assertEqual(len(own.split(",")), 1)
                self.wait(sharing, self.rest(own), daemon)
                self.assertTrue(status_of(container)["exclusive"])
                self.assertFalse(status_of(sharing)["exclusive"])
                picture = holdfast("cpu", "status", "-o", "svg").stdout
                self.assertIn("<svg", picture)
                self.assertIn(status_of(container)["container"], picture)
                self.check_runs_only_on(container, own)
            self.wait(sharing, self.all, daemon)
            self.assertEqual(status()["pool"], self.all)

    def check_runs_only_on(self, container, own: str):
        """A busy loop inside: the CPU that the kernel ran it on last is one of its own, each time."""
        script = "print('ready', flush=True)\nwhile True: pass\n"
        loop = run_inside(container.pid, [*container.cgroups(), cpuset_of(container)], script)
        try:
            loop.stdout.readline()
            child = next(pid for pid in engines.processes() if cpuset_of_pid(pid) == cpuset_of(container) and pid != container.pid)
            for _ in range(50):
                fields = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                self.assertEqual(fields[36], own)
                time.sleep(0.002)
        finally:
            loop.kill()
            loop.wait()

    def test_docker_by_label(self):
        self.check_exclusive(lambda: engines.docker("v1", options=ONE))

    def test_podman_by_annotation(self):
        self.check_exclusive(lambda: engines.podman("v1", options=ONE_BY_ANNOTATION))

    def test_containerd_by_annotation(self):
        self.check_exclusive(lambda: engines.containerd("v1", options=ONE_BY_ANNOTATION))

    def test_runc_by_annotation(self):
        self.check_exclusive(lambda: asking("runc", {"holdfast.cpus": "1"}))

    def test_crun_by_annotation(self):
        self.check_exclusive(lambda: asking("crun", {"holdfast.cpus": "1"}))

    # In the first second

    def check_first_second(self, start):
        """The best of five: this machine may be busy. What the engine itself takes counts too, from the first process on."""
        ages = []
        with guarding(HOLDFASTD, config=CONFIG) as daemon:
            self.assertTrue(eventually(lambda: "cpus-managed" in daemon.said()), daemon.said())
            for _ in range(5):
                with start() as container:
                    self.own(container, daemon)
                    ages.append(age_of(container.pid))
                if ages[-1] < 1:
                    return
                self.assertTrue(eventually(lambda: status()["pool"] == self.all), daemon.said())  # its CPUs are free again
            self.assertLess(min(ages), 3 if is_sanitized() else 1, f"{ages}: {daemon.said()}")

    def test_docker_in_the_first_second(self):
        self.check_first_second(lambda: engines.docker("v1", options=ONE))

    def test_runc_in_the_first_second(self):
        self.check_first_second(lambda: asking("runc", {"holdfast.cpus": "1"}))  # its cgroup has no engine's name

    # At creation

    @contextlib.contextmanager
    def created(self, annotations: dict[str, str]):
        """A container that holdfast-runtime has created and not started: its cpuset, and how long that took."""
        name = secrets.token_hex(32)  # as docker names them: such a cgroup is recognised when it is created
        runtime = [RUNTIME, "--root", "/run/runc"]
        with engines.scratch_directory() as directory, engines.view("v1") as machine:
            engines.write_bundle(directory, f"/docker/{name}", False)
            file = directory / "config.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"annotations": annotations}))
            machine.cgroups.add(f"/docker/{name}")
            with engines.cleanup(lambda: machine.call(*runtime, "delete", "-f", name)):
                began = time.monotonic()
                machine.call(*runtime, "create", "--bundle", f"{directory}", name)
                took = time.monotonic() - began
                cpus = (CPUSET / "docker" / name / "cpuset.cpus").read_text().strip()
                machine.call(*runtime, "start", name)
                yield cpus, took

    def test_the_runtime_waits_until_a_container_has_its_cpus(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon:
            self.assertTrue(eventually(lambda: (STATE / "placement").exists()), daemon.said())
            for _ in range(10):  # the runtime waits 50 ms at most, and this machine may be busy
                with self.created({"holdfast.cpus": "1"}) as (own, _):
                    if own == self.all:
                        continue
                    self.assertNotEqual(own, "0")
                    with self.created({}) as (shared, _):
                        if shared == self.all:
                            continue
                        self.assertEqual(shared, self.rest(own))
                        return
            self.fail("no container had its CPUs when the runtime returned")

    def test_a_manager_that_hangs_delays_no_start_for_long(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon:
            self.assertTrue(eventually(lambda: (STATE / "placement").exists()), daemon.said())
            with self.created({}) as (_, usual):
                pass
            daemon.tell(signal.SIGSTOP)
            try:
                with self.created({"holdfast.cpus": "1"}) as (cpus, took):
                    self.assertEqual(cpus, self.all)
                    self.assertGreater(took, 0.05)
                    self.assertLess(took, usual + 2)  # the limit is 0.05 s, and this machine may be busy
            finally:
                daemon.tell(signal.SIGCONT)
            daemon.kill()
            with self.created({"holdfast.cpus": "1"}) as (cpus, _):  # its socket is still there
                self.assertEqual(cpus, self.all)

    def test_switched_on_and_off_while_it_runs(self):
        with guarding(HOLDFASTD, config=policy()) as daemon, asking("runc", {"holdfast.cpus": "1"}) as container:
            time.sleep(0.3)
            self.assertEqual(cpus_of(container), self.all)
            daemon.config.write_text(CONFIG)
            daemon.tell(signal.SIGHUP)
            own = self.own(container, daemon)
            daemon.config.write_text(policy())
            daemon.tell(signal.SIGHUP)
            self.assertTrue(eventually(lambda: not (STATE / "placement").exists()), daemon.said())
            self.assertEqual(cpus_of(container), own)  # it keeps what it has
            with asking("crun", {"holdfast.cpus": "1"}) as other:
                time.sleep(0.5)
                self.assertEqual(cpus_of(other), self.all)

    # What asks for too much, or wrongly

    def test_one_that_finds_no_cpus_waits_in_the_pool(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": "1"}) as first:
            own = self.own(first, daemon)
            with asking("crun", {"holdfast.cpus": str(os.cpu_count())}) as greedy, asking("runc", {"holdfast.cpus": "one"}) as wrong:
                self.assertTrue(eventually(lambda: cpus_of(greedy) == cpus_of(wrong) != self.all), daemon.said())
                problems = {one["id"]: one.get("problem", "") for one in status(code=1)["containers"]}
                self.assertIn("not enough cpus available", problems[greedy.id])
                self.assertIn("holdfast.cpus='one': want a number of CPUs", problems[wrong.id])
                self.assertEqual(cpus_of(first), own)

    def test_its_cpus_go_to_one_that_waits(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon, contextlib.ExitStack() as stack:
            count = str(os.cpu_count() - 1)
            first = stack.enter_context(contextlib.ExitStack())
            one = first.enter_context(asking("runc", {"holdfast.cpus": count}))
            self.wait(one, f"1-{self.last}" if self.last != "1" else "1", daemon)
            other = stack.enter_context(asking("crun", {"holdfast.cpus": count}))
            self.wait(other, "0", daemon)
            first.close()
            self.wait(other, f"1-{self.last}" if self.last != "1" else "1", daemon)

    # Restarts, and what they find

    def test_a_restart_changes_nothing(self):
        with contextlib.ExitStack() as stack:
            daemon = stack.enter_context(guarding(HOLDFASTD, config=CONFIG))
            sharing, owner = stack.enter_context(engines.oci("v1", "crun")), stack.enter_context(asking("runc", {"holdfast.cpus": "1"}))
            own = self.own(owner, daemon)
            self.wait(sharing, self.rest(own), daemon)
            state = (STATE / "cpu_manager_state").read_text()
            for _ in range(5):
                daemon.kill()
                daemon.start()
                self.assertTrue(eventually(lambda: "cpus-managed" in daemon.said()))
                time.sleep(0.5)
                self.assertEqual((cpus_of(owner), cpus_of(sharing), (STATE / "cpu_manager_state").read_text()), (own, self.rest(own), state))
                self.assertNotIn("cpus-assigned", daemon.said())

    def rest(self, own: str) -> str:
        return "0" if self.last == "1" else ",".join(sorted({*map(str, range(int(self.last) + 1))} - {own}))

    def test_a_damaged_state_is_rebuilt(self):
        with contextlib.ExitStack() as stack:
            daemon = stack.enter_context(guarding(HOLDFASTD, config=CONFIG))
            sharing, owner = stack.enter_context(engines.oci("v1", "crun")), stack.enter_context(asking("runc", {"holdfast.cpus": "1"}))
            own = self.own(owner, daemon)
            self.wait(sharing, self.rest(own), daemon)
            state = json.loads((STATE / "cpu_manager_state").read_text())
            for damage in ("", "{", json.dumps(state | {"checksum": 1})):
                daemon.kill()
                (STATE / "cpu_manager_state").write_text(damage)
                daemon.start()
                self.assertTrue(eventually(lambda: "cpu-state-rebuilt" in daemon.said()), daemon.said())
                self.assertTrue(eventually(lambda: json.loads((STATE / "cpu_manager_state").read_text()).get("entries") == state["entries"]), daemon.said())
                self.assertEqual((cpus_of(owner), cpus_of(sharing)), (own, self.rest(own)))
            self.assertEqual(len(list(STATE.glob("*.damaged*"))), 3)

    def test_no_room_for_the_state(self):
        """Nothing is done that is not recorded; when there is room again, it is done."""
        STATE.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=3", "tmpfs", STATE], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", STATE], check=False)
        (STATE / "lock").touch()
        (STATE / "filler").touch()
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": "1"}) as owner:
            self.assertTrue(eventually(lambda: "No space left" in daemon.said()), daemon.said())
            self.assertEqual(cpus_of(owner), self.all)
            (STATE / "filler").unlink()
            subprocess.run(["mount", "-o", "remount,size=1m,nr_inodes=100", STATE], check=True)
            self.own(owner, daemon)

    def test_two_managers(self):
        """The other one has a /run/holdfast of its own, without which it is refused, and the same state."""
        place = STATE.parent
        script = f'mount --bind {STATE} /mnt; mount -t tmpfs none {place}; mkdir {STATE}; mount --bind /mnt {STATE}; exec "$@"'
        elsewhere = lambda *command: ["unshare", "-m", "sh", "-ec", script, "sh", *command]  # noqa: E731
        with guarding(HOLDFASTD, config=CONFIG) as one, guarding(HOLDFASTD, config=CONFIG, prefix=elsewhere) as other, engines.oci("v1", "runc") as sharing:
            for _ in range(3):
                with asking("crun", {"holdfast.cpus": "1"}) as owner:
                    own = self.own(owner, one)
                    self.wait(sharing, self.rest(own), other)
                self.wait(sharing, self.all, other)
            self.assertNotIn("keeps setting", one.said() + other.said())

    def test_a_cpu_goes_offline_and_comes_back(self):
        switch = pathlib.Path(f"/sys/devices/system/cpu/cpu{self.last}/online")
        if not switch.exists():
            self.skipTest(f"CPU {self.last} cannot go offline")
        with guarding(HOLDFASTD, config=CONFIG) as daemon, engines.oci("v1", "runc") as sharing, asking("crun", {"holdfast.cpus": str(os.cpu_count() - 1)}) as owner:
            whole = f"1-{self.last}" if self.last != "1" else "1"
            self.wait(owner, whole, daemon)
            self.addCleanup(switch.write_text, "1")
            switch.write_text("0")
            try:
                self.assertTrue(eventually(lambda: self.last not in status()["online"].replace("-", ",").split(","), 60))
                time.sleep(1)
                self.assertNotEqual(cpus_of(sharing), "")
                self.assertNotEqual(cpus_of(owner), "")
            finally:
                switch.write_text("1")
            self.assertTrue(eventually(lambda: cpus_of(owner) == whole and cpus_of(sharing) == "0", 30), f"{cpus_of(owner)} {cpus_of(sharing)} {daemon.said()}")

    # Others

    def test_another_writer_is_named_not_fought(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": "1"}) as owner:
            own = self.own(owner, daemon)
            file = cpuset_of(owner) / "cpuset.cpus"
            for _ in range(2):
                subprocess.run(["sh", "-c", f"echo 0 > {file}; sleep 0.3"], check=True)
                self.wait(owner, own, daemon)  # once or twice may be a mistake
            for _ in range(3):
                subprocess.run(["sh", "-c", f"echo 0 > {file}; sleep 0.3"], check=True)
            self.assertTrue(eventually(lambda: "keeps setting its cpuset to 0; it is left alone" in daemon.said()), daemon.said())
            self.assertRegex(daemon.said(), r"sh.* keeps setting")
            time.sleep(0.5)
            self.assertEqual(cpus_of(owner), "0")

    def test_beside_kubelets_static_policy_it_refuses(self):
        kubelet = pathlib.Path("/var/lib/kubelet")
        if (kubelet / "cpu_manager_state").exists():
            self.skipTest("this machine has a kubelet")
        existed = kubelet.exists()
        kubelet.mkdir(parents=True, exist_ok=True)
        self.addCleanup(lambda: None if existed else kubelet.rmdir())
        self.addCleanup((kubelet / "cpu_manager_state").unlink)
        (kubelet / "cpu_manager_state").write_text(json.dumps({"policyName": "static", "defaultCpuSet": self.all, "checksum": 0}))
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": "1"}) as container:
            self.assertTrue(eventually(lambda: "cpus-not-managed" in daemon.said()))
            self.assertIn("kubelet assigns CPUs itself", daemon.said())
            time.sleep(0.5)
            self.assertEqual(cpus_of(container), self.all)

    # By hand

    def test_assign_and_release(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon, engines.oci("v1", "runc") as one, engines.oci("v1", "crun") as other:
            done = holdfast("cpu", "assign", one.name, "1")
            self.assertEqual(done.returncode, 0, done.stderr)
            own = cpus_of(one)
            self.assertNotIn(own, (self.all, "0"))
            self.wait(other, self.rest(own), daemon)
            self.assertIn(own, json.dumps(json.loads((STATE / "cpu_manager_state").read_text())["entries"]))
            again = holdfast("cpu", "assign", other.name, str(os.cpu_count()))
            self.assertEqual((again.returncode, again.stdout), (1, ""), again.stderr)
            self.assertIn("not enough cpus available", again.stderr)
            self.assertEqual(holdfast("cpu", "release", one.name).returncode, 0)
            self.assertEqual((cpus_of(one), cpus_of(other)), (self.all, self.all))
            time.sleep(1)
            self.assertEqual(cpus_of(one), self.all)

    def test_released_by_hand_it_stays_so(self):
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": "1"}) as one:
            own = self.own(one, daemon)
            self.assertEqual(holdfast("cpu", "release", one.name).returncode, 0)
            with engines.oci("v1", "crun"):  # an event
                time.sleep(1)
                self.assertEqual(cpus_of(one), self.all)
                self.assertIn("released by hand", status_of(one)["problem"])
            self.assertEqual(holdfast("cpu", "assign", one.name, "1").returncode, 0)
            self.assertEqual(cpus_of(one), own)

    def test_given_by_hand_it_stays_so(self):
        """Also where it asks for another number: for more than there are."""
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": str(os.cpu_count())}) as one:
            self.assertEqual(holdfast("cpu", "assign", one.name, "1").returncode, 0)
            own = cpus_of(one)
            with engines.oci("v1", "crun"):  # an event
                time.sleep(1)
                self.assertEqual(cpus_of(one), own, daemon.said())
            self.assertIn(one.id, (STATE / "by_hand").read_text())

    def test_bad_input(self):
        for arguments in (["assign", "no-such-container", "1"], ["assign", "x", "0"], ["assign", "x", "many"], ["release", "no-such-container"], ["assign", "x", "1", "--option", "nonsense"]):
            done = holdfast("cpu", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    # The point of it

    def test_devices_are_not_touched(self):
        """An update by an old runc takes an injected device away; changes of the cpuset do not, however many."""
        old = engines.old_runc(pathlib.Path(HOLDFAST).parent / "packages")
        with engines.oci("v1", old, gpu=False) as container, engines.oci("v1", "crun"):
            container.inject_v1()
            rules = next(cgroup / "devices.list" for cgroup in container.cgroups() if (cgroup / "devices.list").exists())
            before = rules.read_bytes()
            with opening(container.pid, container.cgroups(), [engines.GPU], pause=0) as opener:
                for _ in range(int(os.environ.get("HOLDFAST_ROUNDS", "20"))):
                    self.assertEqual(holdfast("cpu", "assign", container.name, "1").returncode, 0)
                    self.assertEqual(holdfast("cpu", "release", container.name).returncode, 0)
                seen = opener.look()
            self.assertEqual(seen["counts"].get("EPERM", 0), 0)
            self.assertGreater(seen["counts"]["ENXIO"], 1000)
            self.assertEqual(rules.read_bytes(), before)
            with contextlib.suppress(engines.Unavailable):
                container.update_cpus()
            self.assertEqual(container.opens(), "EPERM")

    def test_nested_cgroups_move_along(self):
        """A container may have made cgroups of its own, which on v1 must lie within its cpuset at any moment."""
        with guarding(HOLDFASTD, config=CONFIG) as daemon, asking("runc", {"holdfast.cpus": "1"}) as owner, engines.oci("v1", "crun") as sharing:
            own = self.own(owner, daemon)
            inner = cpuset_of(sharing) / "inner"
            (inner / "deep").mkdir(parents=True)
            for directory in (inner, inner / "deep"):
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (directory / name).write_text((directory.parent / name).read_text())
            try:
                self.assertEqual(holdfast("cpu", "release", owner.name).returncode, 0)
                self.assertEqual({(path / "cpuset.cpus").read_text().strip() for path in (inner, inner / "deep")}, {self.all})
                self.assertEqual(holdfast("cpu", "assign", owner.name, "1").returncode, 0)
                self.assertEqual({(path / "cpuset.cpus").read_text().strip() for path in (inner, inner / "deep")}, {self.rest(own)})
            finally:
                (inner / "deep").rmdir()
                inner.rmdir()


class UnderSystemd(unittest.TestCase):
    """cgroup v2, where a reload of systemd writes the cpuset of a unit again."""

    def setUp(self):
        if reason := why_no_systemd():
            self.skipTest(reason)
        if "cpuset" not in (V2 / "cgroup.controllers").read_text().split():
            self.skipTest("cgroup v2 has no cpuset here")
        switch = V2 / "cgroup.subtree_control"
        if "cpuset" not in switch.read_text().split():
            switch.write_text("+cpuset")
            self.addCleanup(switch.write_text, "-cpuset")

    def test_a_reload_keeps_the_cpus(self):
        with systemd_host("v2") as host, host.container() as owner, host.container() as sharing:
            config = "guard: {mode: observe}\ncpus: {manager: true, reserved: 0}\n"
            everything = (host.cgroup / "cpuset.cpus.effective").read_text().strip()

            def cpus(container) -> str:
                return (container.cgroup / "cpuset.cpus.effective").read_text().strip()

            with guarding(HOLDFASTD, config=config, prefix=host.enter, within=host.directory) as daemon:
                host.run(HOLDFAST, "cpu", "assign", owner.name, "1")
                own = cpus(owner)
                self.assertNotIn(own, (everything, "0"))
                self.assertTrue(eventually(lambda: cpus(sharing) != everything), daemon.said())
                shared = cpus(sharing)
                for _ in range(3):
                    host.daemon_reload()
                    self.assertEqual((cpus(owner), cpus(sharing)), (own, shared))
                self.assertEqual(host.systemctl("show", "-P", "AllowedCPUs", owner.unit), own)
                host.run(HOLDFAST, "cpu", "release", owner.name)
                self.assertTrue(eventually(lambda: cpus(owner) == cpus(sharing) == everything), f"{cpus(owner)} {cpus(sharing)} {daemon.said()}")
                host.daemon_reload()
                self.assertEqual((cpus(owner), cpus(sharing)), (everything, everything))

    def test_a_reload_keeps_a_configured_cpuset_within_the_pool(self):
        """The runtime has told systemd of the CPUs in the configuration, which are another container's later."""
        everything = pathlib.Path("/sys/devices/system/cpu/online").read_text().strip()
        with systemd_host("v2") as host, host.container() as owner, host.container(cpus=everything) as sharing:
            config = "guard: {mode: observe}\ncpus: {manager: true, reserved: 0}\n"
            effective = [container.cgroup / "cpuset.cpus.effective" for container in (owner, sharing)]
            with guarding(HOLDFASTD, config=config, prefix=host.enter, within=host.directory) as daemon:
                self.assertEqual(host.systemctl("show", "-P", "AllowedCPUs", sharing.unit), everything)
                host.run(HOLDFAST, "cpu", "assign", owner.name, "1")
                given = [file.read_text() for file in effective]
                self.assertNotIn(everything + "\n", given, daemon.said())
                for _ in range(4):  # so many writes of another program would be too many
                    host.daemon_reload()
                    self.assertEqual([file.read_text() for file in effective], given, daemon.said())


def cpuset_of_pid(pid: int) -> pathlib.Path | None:
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "cpuset":
                return CPUSET / path.lstrip("/")
    return None


if __name__ == "__main__":
    if reason := why_not():
        print(reason)
        sys.exit(77)
    run_suite(verbosity=2)
